# SPDX-License-Identifier: MIT
"""What was promised (the project's issue on speed), and whether this run kept it."""

READS = ('rg', 'grep', 'find', 'read', 'status')


class Target:
    """
    label; workloads it is about; limit; of: the system that it is a multiple of, None for an absolute value; what: which
    figure of the cell; unit for the table; against: another workload of sbxfs that it is a multiple of
    """

    def __init__(self, label, workloads, limit, of=None, what='median', unit='s', against=None):
        self.label, self.workloads, self.limit, self.of = label, workloads, limit, of
        self.what, self.unit, self.against = what, unit, against

    def judge(self, cells):
        """[(workload, value, limit, met)] for what was measured."""
        found = []
        for name in self.workloads:
            ours = cells.get(name, {}).get('sbxfs', {}).get(self.what)
            base = 1.0
            if self.of:
                base = cells.get(name, {}).get(self.of, {}).get(self.what)
            elif self.against:
                base = cells.get(self.against, {}).get('sbxfs', {}).get(self.what)
            if ours is not None and base:
                found.append((name, ours / base, self.limit, ours / base <= self.limit))
        return found


MIB = 1 << 20
TARGETS = [
    Target('warm reading', [f'{r}-warm' for r in READS], 1.10, of='native'),
    Target('first touch', [f'{r}-cold' for r in READS], 2.0, of='overlay'),
    Target('creating', ['untar', 'npm', 'clone', 'saves', 'saves-fsync'], 0.7, of='overlay'),
    Target('creating', ['untar', 'npm', 'clone', 'saves', 'saves-fsync'], 0.5, of='fuse-overlayfs'),
    Target('rm -rf', ['rm'], 1.0, of='overlay'),
    Target('compile', ['compile'], 1.08, of='native'),
    Target('256 MiB write', ['write-256'], 2.0, of='native'),
    Target('256 MiB cold read', ['read-256-cold'], 2.0, of='native'),
    Target('256 MiB warm read', ['read-256-warm', 'read-256-own'], 1.2, of='native'),
    Target('first write into 1 GiB', ['first-write'], 0.020),
    Target('its store', ['first-write'], 2 * MIB, what='store_growth', unit='B'),
    Target('SQLite', ['sqlite', 'sqlite-wal'], 1.5, of='overlay'),
    Target('mount', ['mount-1000', 'mount-200000'], 0.050),
    Target('snapshot', ['snapshot-0', 'snapshot-1000', 'snapshot-100000'], 0.005),
    Target('rollback of 10 changes', ['rollback-10'], 0.005),
    Target('rollback of 10,000', ['rollback-10000'], 0.3),
    Target('diff of 10,000', ['diff-10000'], 1.0),
    Target('name-status of 10,000', ['names-10000'], 0.2),
    Target('gate over 100 MB', ['gate-100m'], 10.0),
    Target('commit of 10,000', ['commit-10000'], 10.0),
    Target('1,000 rules, warm walk', ['rules-1000-warm'], 1.2, against='rules-0-warm'),
    Target('memory after 200,000 files', ['memory'], 150 * 1024, what='daemon_kib', unit='KiB'),
]


def beaten(cells):
    """Rows in which fuse-overlayfs is not slower."""
    rows = []
    for name, systems in cells.items():
        ours, theirs = systems.get('sbxfs', {}).get('median'), systems.get('fuse-overlayfs', {}).get('median')
        if ours and theirs and ours > theirs:
            rows.append((name, ours / theirs))
    return rows
