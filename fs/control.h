/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * control - what the tools ask of a sandbox, mounted or not
 *
 * One operation = a name and arguments (a GVariant of type a{sv}); the answer is another a{sv}. While a view is mounted its
 * process answers on a unix socket (control_serve(), control_connect()); while none is, the tool holds the overlay itself and
 * calls control_handle() in its own process: one set of operations, one code.
 *
 * On the wire: a 32-bit length in host order and that many bytes of the serialised GVariant (sa{sv}) for a request,
 * (ba{sv}) for an answer (true = done; false = "code" i, "message" s). Paths are bytestrings ("ay" with the final NUL), because file
 * names need not be UTF-8. The answer to "root" carries a file descriptor (SCM_RIGHTS). Only the owner of the store may connect, from
 * outside of any confinement: a process with other user or process namespaces than the server's is hung up on.
 *
 *   status    {}                                    -> pid i, keeper i (see fs/keeper.h; 0 = none), takeovers u (since the mount), mountpoint s, epoch x, names t (rows), nodes t (in memory), disk-used t, disk-limit t
 *             (bytes, see store_usage(); 0 = no limit), messages a{st}
 *   root      {}                                    -> + descriptor of the workspace's real root, under any mount
 *   pin       {}                                    -> epoch x: a state that stays immutable and readable until unpin or disconnect
 *             {epoch x}: the same for one that a process which died had given
 *   unpin     {epoch x}
 *   snapshot  {name s}                              -> epoch x
 *   snapshot-delete {name s}
 *   rollback  {to x (epoch; 0 = the start), paths aay (none or empty = all), scratch b (take back
 *             scratch paths too), name s (of the automatic snapshot)} -> epoch x (of it), names t, nodes t (changed)
 *   gc        {automatic b, dry-run b} -> snapshots as, versions t, contents t, bytes t: of snapshot/gc.h
 *   record    {records aay}: encodings of snapshot/audit_record.h, of what the kernel's requests don't show (AUDIT_RUN and up)
 *   limit     {disk t}: the store's from now on, until the view is unmounted; 0 = none
 *   keep      {epoch x, paths aay}                  -> before a commit of epoch, or its undoing, writes those paths of the workspace
 *   settle    {epoch x, paths aay, partial aay}     -> after a commit: those paths of the workspace are now what the view had at epoch,
 *             but for those in partial, of which only a part was written
 *   unfollow  {epoch x, paths aay}                  -> before an undo takes a commit of epoch back from those paths of the workspace
 *   refollow  {epoch x, paths aay}                  -> when it has brought back what the commit took away, and taken away nothing yet
 *   unsettle  {epoch x, paths aay}                  -> and after it: what the commit wrote is pending again
 *   questions {}                                    -> questions aa{sv}: those that wait for a human, see question_describe()
 *   answer    {id u, verdict s (allow, deny), scope s (once, path, always; of allow)}
 *   question  {kind s (network), subject s (host:port), operation s, program s, pid i, timeout u (seconds; 0 or none: the policy's)}
 *             -> verdict s (allow, deny, timeout), by s: waits for a human, for what is no operation in the view. Ends when the caller
 *             hangs up. What was allowed with the scope path or always is allowed at once.
 *   questions-end {}                                -> ended u: a no to all that wait now, for an unmount
 *
 * Snapshots are read by the tools directly from the store.
 */

#include <gio/gio.h>
#include <stdbool.h>

#include "snapshot/audit_record.h"

struct overlay;
struct control;
struct control_server;

#define CONTROL_ERROR (control_error_quark())
GQuark control_error_quark(void);
enum control_error {
	CONTROL_ERROR_FAILED,
	CONTROL_ERROR_NOT_FOUND,
	CONTROL_ERROR_EXISTS,
	CONTROL_ERROR_BUSY,
	CONTROL_ERROR_NO_SPACE,
	CONTROL_ERROR_GONE, /* the serving process went away */
};

/* How an operation that waits learns that its caller does not any more; NULL = never. */
struct control_caller {
	bool (*gone)(void *user);
	void *user;
};

/* control_handle() - one operation, in this process. @ret_fd: -1 or a descriptor that the caller closes. */
GVariant *control_handle(struct overlay *o, const char *operation, GVariant *arguments, const struct control_caller *caller, int *ret_fd,
			 GError **error);

/* control_serve() - answers on a socket at @path (made with mode 0600) in threads of its own until control_stop(). */
struct control_server *control_serve(struct overlay *o, const char *path, GError **error);
void control_stop(struct control_server *s);

/* control_connect() - to a mounted sandbox; control_local() - to an overlay of this process, borrowed. */
struct control *control_connect(const char *path, GError **error);
struct control *control_local(struct overlay *o);
/* control_reach() - as control_connect(); where the process that served died, it waits for the one that takes over, up to ten seconds. */
struct control *control_reach(const char *path, GError **error);
/*
 * control_call() - @arguments may be floating, or NULL. Where the process died, the call goes to the one that takes over, and pins go with it; but
 * what it may have carried out already, and is not the same done twice, is CONTROL_ERROR_GONE.
 */
GVariant *control_call(struct control *c, const char *operation, GVariant *arguments, GError **error);
int control_root_fd(struct control *c, GError **error);
/* control_record() - adds @r to the audit; its time is that of the call. */
bool control_record(struct control *c, const struct audit_record *r, GError **error);
/* control_records() - the same for @encoded (GByteArray, see audit_record_encode()), then @last; either may be NULL. */
bool control_records(struct control *c, const GPtrArray *encoded, const struct audit_record *last, GError **error);
void control_close(struct control *c);
