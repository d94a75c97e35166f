"""The benchmark of reward models: how well a judge tells right from wrong, on live candidates above all.

``material`` makes labelled cases with the world's own verdict, ``judges`` and ``vision`` score them,
``figures``, ``summary`` and ``plots`` say how well, ``benchmark`` does it all. Nothing here is trained on.
"""
