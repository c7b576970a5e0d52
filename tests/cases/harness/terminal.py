# SPDX-License-Identifier: MIT
"""A terminal for the commands that want one: a pty that is answered line by line, and tmux for what draws a whole screen.

Both wait for what they expect, however long the machine takes, and fail a case only when it does not come at all.
"""
import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import time

from .kit import Failed, Skipped, eq, short

PATIENCE = 60


class Pty:
    """A command on a terminal of its own. Use as a context; what is still running then is killed."""

    def __init__(self, *arguments, cwd='/', env=None):
        self.out = b''
        self.seen = 0  # what expect() has gone past
        self.code = None
        self.arguments = arguments
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.environ.update(env or {})
                os.execvp(arguments[0], arguments)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _read(self):
        """More output; False at the end."""
        if not select.select([self.fd], [], [], PATIENCE)[0]:
            raise Failed(f'{self.arguments}: nothing more came after {short(self.out[-300:])}')
        data = b''
        with contextlib.suppress(OSError):
            data = os.read(self.fd, 65536)
        self.out += data
        return bool(data)

    def expect(self, text):
        """Waits until @text was printed, after what was expected before."""
        want = text.encode()
        while (found := self.out.find(want, self.seen)) < 0:
            if not self._read():
                raise Failed(f'{self.arguments}: ended before "{text}": {short(self.out[-600:])}')
        self.seen = found + len(want)
        return self

    def say(self, line):
        os.write(self.fd, line.encode() + b'\n')
        return self

    def answers(self, letters, question=',?]? '):
        for letter in letters:
            self.expect(question).say(letter)
        return self

    def end(self, code=0):
        """Its output, when it has ended with @code."""
        while self._read():
            pass
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        eq(self.code, code, f'exit of {" ".join(self.arguments)}; it said {short(self.out[-600:])}')
        return self.out.decode('utf-8', 'surrogateescape').replace('\r\n', '\n')


class Tmux:
    """A command in a tmux of its own. Use as a context."""

    def __init__(self, t, command, columns=90, rows=24):
        if not shutil.which('tmux'):
            raise Skipped('no tmux')
        self.socket = t.path('run', 'tmux')
        self.end_file = t.path('tmp', 'end')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.end_file)
        # Run by a shell of ours: left to itself tmux takes $SHELL or the user's login shell, and for `nobody` that is nologin.
        script = f'{command}; echo $? >{self.end_file}.new; mv {self.end_file}.new {self.end_file}; read -r forever'
        self._call('-f', '/dev/null', 'new-session', '-d', '-x', str(columns), '-y', str(rows), '/bin/sh', '-c', script)

    def _call(self, *arguments):
        done = subprocess.run(['tmux', '-S', self.socket, *arguments], capture_output=True, check=False, timeout=PATIENCE)
        if done.returncode:
            raise Failed(f'tmux {arguments[0]}: {done.stderr.decode(errors="replace")}')
        return done.stdout.decode('utf-8', 'surrogateescape')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pids = self._call('display-message', '-p', '#{pid}').split()
        subprocess.run(['tmux', '-S', self.socket, 'kill-server'], capture_output=True, check=False)
        while pids and os.path.exists(f'/proc/{pids[0]}'):
            time.sleep(0.01)

    def screen(self):
        return self._call('capture-pane', '-p')

    def wait(self, *texts, gone=()):
        """The screen, as soon as all of @texts are on it and none of @gone."""
        end = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and not any(text in screen for text in gone):
                return screen
            if time.monotonic() > end:
                raise Failed(f'not on the screen: {texts} (without {gone}); it has:\n{screen}')
            time.sleep(0.02)

    def keys(self, *keys):
        """Names as tmux knows them: letters, Enter, Tab, Up, C-c ..."""
        self._call('send-keys', *keys)
        return self

    def type(self, text):
        self._call('send-keys', '-l', text)
        return self

    def resize(self, columns, rows):
        self._call('resize-window', '-x', str(columns), '-y', str(rows))
        return self

    def title(self):
        return self._call('display-message', '-p', '#{pane_title}').strip()

    def end(self, code=0):
        """What is on the screen when the command has ended with @code."""
        limit = time.monotonic() + PATIENCE
        while not os.path.exists(self.end_file):
            if time.monotonic() > limit:
                raise Failed(f'it does not end; on the screen:\n{self.screen()}')
            time.sleep(0.02)
        with open(self.end_file, encoding='ascii') as file:
            eq(int(file.read()), code, f'exit; on the screen:\n{self.screen()}')
        return self.screen()
