"""Runs a command and ends its whole process group when the command ends, or when standard input closes.

Standard input is a pipe from the process that wants the command, so the kernel closes it when that one dies, however
it dies; and the group takes along what a shell or the command itself has started.
"""

import os
import select
import signal
import subprocess
import sys

command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
select.select([sys.stdin, os.pidfd_open(command.pid)], [], [])
os.killpg(0, signal.SIGKILL)
