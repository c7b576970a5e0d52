# SPDX-License-Identifier: MIT
"""What a workload is, and the list that the modules of workloads fill.

A workload has up to four parts, each called with the View in a process of its own:
  before   on the lower tree, before the view is opened
  setup    in the view, untimed
  work     timed; what it returns must be equal in all systems
  check    after it, untimed; the same holds for what it returns
A workload that measures something itself returns {'seconds': s, 'value': v, 'extra': {...}} from work.
"""

ALL = ('native', 'overlay', 'fuse-overlayfs', 'bare', 'sbxfs')


class Workload:
    def __init__(self, name, label, work, data='empty', setup=None, check=None, before=None, changes=True, passes=1, systems=ALL,
                 timeout=300, policy=None, most=None, store=False, group=None,
                 long=False, own=False):
        """
        changes  False: only read, so that native works on the data itself
        passes   work is done so many times in one view, and their median counts: for what is short
        policy   function of a directory: the policy file to mount with
        most     at most so many repetitions: for what is long
        long     left out of --quick
        own      work on a copy of the data, because the workspace itself is changed
        group    workloads of one group are measured in turn with each other
        store    report how much the store grows
        """
        self.name, self.label, self.work, self.data = name, label, work, data
        self.setup, self.check, self.before, self.changes, self.passes = setup, check, before, changes, passes
        self.systems, self.timeout, self.policy, self.most, self.store = systems, timeout, policy, most, store
        self.group, self.long, self.own = group, long, own


WORKLOADS = {}


def add(name, label, work, **options):
    WORKLOADS[name] = Workload(name, label, work, **options)
