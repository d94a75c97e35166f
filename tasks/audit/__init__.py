"""The benchmark of reward models: how well a judge tells right from wrong, on live candidates above all.

``material`` and ``canaries`` make labelled cases with the world's own verdict, ``judges`` and ``vision`` score them,
``figures``, ``calibration`` and ``plots`` say how well, ``benchmark`` does it all. Nothing here is trained on.
"""
