# SPDX-License-Identifier: MIT
"""The guards of sbxfs, each with what takes it out of the source, and the tests that then have to fail: attacks, or what else sees it. See mutate.

A guard is named by its exact text, so whoever changes it is led here. Where two guards stand behind each other (what an ordinary user
cannot open by its mode, the read refuses as well), `who` is the caller whom only this one stops.
"""
from collections import namedtuple

Guard = namedtuple('Guard', 'what file old new who tests')
GUARDS = []


def guard(what, file, old, new, who, tests):
    GUARDS.append(Guard(what, file, old, new, who, tests.split()))


# What a verdict means

guard('a denial is one', 'fs/guard.c', '	v->action = MAX(', '	v->action = policy_action(p, v->view) == ACTION_DENY ? ACTION_READ : MAX(', 'user',
      'view_bytes/clone_and_compare view_bytes/every_program view_bytes/ioctl view_bytes/root_of_a_user_namespace '
      'view_bytes/what_lies_under_a_view_in_place view_names/proc_names view_names/trailing_dots_and_spaces '
      'view_names/unnamed_file_linked_at_a_denied_name view_states/rollback_to_denied_contents')
guard('deny and hide refuse reads', 'fs/guard.c',
      'return v->action >= ACTION_HIDE ? -ENOENT : v->action >= ACTION_DENY ? -EACCES : 0;', 'return v->action >= ACTION_HIDE ? -ENOENT : 0;', 'root',
      'view_bytes/seek_data view_names/denied_symlink_shows_no_target view_names/dots_and_slashes view_names/rename_exchange '
      'view_names/rename_of_a_denied_node view_names/symlink_into_what_is_denied')
guard('read and mask refuse changes', 'fs/guard.c', 'v->granted >= ACTION_READ ? -EROFS : action_asks', 'v->granted > ACTION_HIDE ? -EROFS : action_asks', 'root',
      'view_bytes/fallocate view_bytes/modes_owners_and_times view_bytes/truncate view_bytes/write_and_append '
      'view_names/hard_link_from_a_denied_file view_names/linkat_by_descriptor view_names/rename_exchange '
      'view_names/rename_of_a_denied_node view_names/rename_over_a_denied_node view_names/unlink_of_a_denied_file')
guard('a masked file has no attributes', 'fs/guard.c', 'return v->action == ACTION_MASK ? -EACCES : guard_look(v);', 'return guard_look(v);', 'user',
      'view_bytes/extended_attributes_and_lists')
guard('a masked file is masked', 'fs/guard.c', '''bool guard_is_masked(const struct verdict *v)
{
	return v->action == ACTION_MASK;''', '''bool guard_is_masked(const struct verdict *v)
{
	return v->action > ACTION_HIDE;''', 'user',
      'view_bytes/copy_file_range view_bytes/masked_files view_bytes/mmap view_bytes/sendfile view_bytes/splice')
guard('no name where a rule forbids it', 'fs/guard.c', '''	int r = guard_change(v);

	return r == -ENOENT ? -EACCES : r;''', '''	(void)v;
	return 0;''', 'user',
      'view_names/device_nodes_and_whiteouts view_names/rename_over_a_denied_node')
guard('no walk through a denied directory', 'fs/guard.c', 'return v->walkable ? 0 : guard_look(v);', 'return v->action >= ACTION_HIDE ? -ENOENT : 0;', 'user',
      'view_bytes/size_times_and_links view_names/names_in_a_denied_directory')
guard('hidden is hidden', 'fs/guard.c', 'return v->action >= ACTION_HIDE;', 'return v->action > ACTION_HIDE;', 'user',
      'view_bytes/hidden_files_leave_no_trace view_bytes/listings_and_positions view_names/create_at_a_hidden_name')
guard('stat shows nothing of a denied node', 'fs/guard.c', 'if (v->action >= ACTION_DENY) {', 'if (v->action > ACTION_HIDE) {', 'user',
      'view_bytes/access view_bytes/ordinary_users_are_refused_at_open view_bytes/watching')
guard('no w bits on what is read-only', 'fs/guard.c', 'attr->mode &= ~0222u;', 'attr->mode &= ~0u;', 'user',
      'view_bytes/access view_bytes/ordinary_users_are_refused_at_open')
guard('the verdict of where it came from', 'fs/guard.c',
      'MAX(policy_action(p, v->view), policy_action(p, v->lower))', 'policy_action(p, v->view)', 'user',
      'view_names/rename_of_a_parent view_states/commit_of_a_directory_that_holds_it')
guard('the verdict of where it is', 'fs/guard.c',
      'MAX(policy_action(p, v->view), policy_action(p, v->lower))', 'policy_action(p, v->lower)', 'user',
      'view_names/create_at_a_denied_name')
guard('a verdict follows a rename', 'fs/overlay_show.c', '''	uint8_t before = n->verdict.action;
	GHashTableIter iter;
	gpointer value;

	node_update_verdict(o, n);''', '''	uint8_t before = n->verdict.action;
	GHashTableIter iter;
	gpointer value;
''', 'user',
      'view_names/rename_exchange_of_parents')
guard('the kernel forgets after a rename', 'fs/overlay_show.c', '	if (before != n->verdict.action) {', '	if (before > ACTION_HIDE) {', 'user',
      'view_names/rename_exchange_of_parents')

# Names

guard('a denied directory tells nothing of its names', 'fs/overlay_name.c',
      'if (dir->verdict.action >= ACTION_DENY && (!c.node || guard_traverse(&c.node->verdict) < 0))', 'if (dir->verdict.action > ACTION_HIDE)', 'user',
      'view_bytes/size_times_and_links view_names/names_in_a_denied_directory')
guard('making: the name', 'fs/overlay_name.c', '''		else
			r = ask_to_name(o, dir, name, m->mode, &v, NULL);''', '''		else
			r = 0;''', 'user',
      'view_bytes/scratch_is_no_way_around_review view_names/device_nodes_and_whiteouts '
      'view_states/profile_named_like_a_file_of_the_workspace')
guard('making, linking, moving: a link above a protected name', 'fs/guard.c', 'return policy_names_closed_below(p, v->view, path) ? -EACCES : 0;', 'return p && v && path ? 0 : -EACCES;', 'user',
      'view_names/symlink_above_a_denied_name')
guard('making: the directory', 'fs/overlay_name.c', 'ask_to_change_in(o, dir, name, NULL);', '0;', 'user',
      'view_names/open_names_in_a_closed_directory')
guard('making: a hidden name looks like a forbidden one', 'fs/overlay_name.c', '''		if (c.node)
			r = guard_is_hidden(&c.node->verdict) ? -EACCES : -EEXIST;
		else''', '''		if (c.node)
			r = -EEXIST;
		else''', 'user',
      'view_bytes/hidden_files_leave_no_trace view_names/create_at_a_hidden_name')
guard('linking: the file', 'fs/overlay_name.c', 'r = node_is_dir(n) ? -EPERM : ask_to_change(o, n);', 'r = node_is_dir(n) ? -EPERM : 0;', 'user',
      'view_names/rename_exchange_of_parents')
guard('linking: the file, by a handle', 'fs/overlay_name.c', 'r = node_is_dir(n) ? -EPERM : ask_to_change(o, n);', 'r = node_is_dir(n) ? -EPERM : 0;', 'root',
      'view_names/rename_exchange_of_parents')
guard('linking: the name', 'fs/overlay_name.c', '		r = ask_to_name(o, dir, name, n->row.attr.mode, &v, n);', '', 'user',
      'view_names/create_at_a_denied_name view_names/hard_link_to_a_denied_name')
guard('linking: the directory', 'fs/overlay_name.c', 'ask_to_change_in(o, dir, name, n);', '0;', 'user',
      'view_names/open_names_in_a_closed_directory')
guard('linking: a hidden name looks like a forbidden one', 'fs/overlay_name.c', '''	if (r == 0 && c.node)
		r = guard_is_hidden(&c.node->verdict) ? -EACCES : -EEXIST;''', '''	if (r == 0 && c.node)
		r = -EEXIST;''', 'user',
      'view_names/create_at_a_hidden_name view_names/hard_link_to_a_denied_name')
guard('reading a link', 'fs/overlay_name.c', 'r = S_ISLNK(n->row.attr.mode) ? guard_look(&n->verdict) : -EINVAL;', 'r = S_ISLNK(n->row.attr.mode) ? 0 : -EINVAL;', 'user',
      'view_names/denied_symlink_shows_no_target')
guard('removing: the directory', 'fs/overlay_name.c', 'ask_to_change_in(o, dir, name, c.node)', '0', 'user',
      'view_names/open_names_in_a_closed_directory')
guard('removing: what goes', 'fs/overlay_name.c', 'ask_to_make(o, dir, name, &c.node->verdict, c.node)', '0', 'user',
      'view_names/removal_of_the_directory_that_holds_it view_names/unlink_of_a_denied_file')
guard('removing: a directory with something hidden in it', 'fs/overlay_name.c', '''		if (!d || d->born == 0)
			return -ENOTEMPTY;''', '''		if (d && d->node && !guard_is_hidden(&d->node->verdict))
			return -ENOTEMPTY;''', 'user',
      'view_names/removal_of_the_directory_that_holds_it')
guard('moving: what goes', 'fs/overlay_name.c', '	int r = ask_to_change(o, n);', '	int r = 0;', 'user',
      'view_names/rename_exchange_of_parents')
guard('moving: the new name', 'fs/overlay_name.c', '	return ask_to_name(o, dir, name, n->row.attr.mode, &v, n);', '	return 0;', 'user',
      'view_names/case_and_unicode view_names/create_at_a_denied_name')
guard('moving: what is replaced', 'fs/overlay_name.c', '		r = ask_to_make(o, m->new_dir, m->new_name, &t->verdict, t);', '		r = 0;', 'user',
      'view_names/rename_of_a_parent')
guard('moving: what changes places', 'fs/overlay_name.c', '		return move_allowed(o, t, m->dir, m->name);', '		return 0;', 'user',
      'view_names/symlink_above_a_denied_name')
guard('moving: the directory left', 'fs/overlay_name.c', 'ask_to_change_in(o, m->dir, m->name, n)', '0', 'user',
      'view_names/open_names_in_a_closed_directory')
guard('moving: the directory entered', 'fs/overlay_name.c', 'ask_to_change_in(o, m->new_dir, m->new_name, n)', '0', 'user',
      'view_names/open_names_in_a_closed_directory')

# Listings

guard('listing a denied directory', 'fs/overlay_dir.c', '''	if (r == 0)
		r = guard_look(&dir->verdict);''', '', 'root',
      'view_bytes/listings_and_positions view_names/dots_and_slashes view_names/symlink_into_what_is_denied')
guard('hidden names of the workspace in a listing', 'fs/overlay_dir.c', 'return !guard_is_hidden(&v);', 'return true;', 'user',
      'view_bytes/hidden_files_leave_no_trace view_bytes/listings_and_positions')
guard('hidden names with a row in a listing', 'fs/overlay_dir.c', 'd->born > 0 && d->node && !guard_is_hidden(&d->node->verdict) &&', 'd->born > 0 && d->node &&', 'user',
      'view_states/hidden_names_that_were_made')

# Attributes

guard('no empty read of a denied file', 'fs/overlay_attr.c', '''	if (r == 0 && for_data)
		r = guard_look(&n->verdict);''', '', 'root',
      'view_bytes/open_and_read view_bytes/open_by_handle')
guard('changing attributes', 'fs/overlay_attr.c', '		r = ask_to_change(o, n);', '		r = 0;', 'user',
      'view_bytes/modes_owners_and_times')
guard('reading extended attributes', 'fs/overlay_xattr.c', 'guard_read_xattr(&(*ret)->verdict);', '0;', 'user',
      'view_bytes/extended_attributes_and_lists')
guard('changing extended attributes', 'fs/overlay_xattr.c', '		r = ask_to_change(o, n);', '		r = 0;', 'root',
      'view_bytes/extended_attributes_and_lists')

# Bytes

guard('reading bytes', 'fs/overlay_data.c', '		r = ask_to_read(o, n);', '		r = 0;', 'root',
      'view_names/rename_exchange_of_parents')
guard('changing bytes', 'fs/overlay_data.c', '		r = ask_to_change(o, n);', '		r = 0;', 'root',
      'view_bytes/copy_file_range view_bytes/fallocate view_bytes/mmap_to_write view_bytes/splice view_bytes/write_and_append')
guard('pages of a refused change', 'fs/overlay_data.c', '			invalidator_inode(o->invalidator, ino, true);', '			;', 'root',
      'view_bytes/mmap_to_write')
guard('holes', 'fs/overlay_data.c', 'r = guard_is_masked(&n->verdict) ? -EOPNOTSUPP : ask_to_read(o, n);', 'r = 0;', 'user',
      'view_bytes/seek_data')
guard('the size of a masked file', 'fs/overlay_show.c', '		a.size = g_bytes_get_size(masked);', '', 'user',
      'view_bytes/mmap')
guard('mask: a bracket is no section', 'fs/mask.c', "if (*text == '[' && is_section(text)) {", "if (*text == '[' && strchr(text, ']')) {", 'user',
      'view_bytes/masked_files')
guard('mask: values after a backslash', 'fs/mask.c', "return n > 0 && line[n - 1] == '\\\\';", 'return false;', 'user',
      'view_bytes/masked_files')
guard('mask: values indented deeper', 'fs/mask.c', '	while ((deeper = deeper_size(m, indent)))', '	while ((deeper = deeper_size(m, indent)) && false)', 'user',
      'view_bytes/masked_files')
guard('mask: passwords in URLs', 'fs/mask.c', '!key_is_secret(key) && !has_password(value)', '!key_is_secret(key)', 'user',
      'view_bytes/masked_files')

guard('the managed policy of the day', 'tools/policy_renew.c', 'policy_to_ini_renewed(kept, others)', 'policy_to_ini_renewed(kept, kept)', 'root',
      'view_states/a_managed_policy_made_later view_states/a_workspace_policy_made_later')
guard('the workspace policy of the day', 'tools/policy_renew.c', 'policy_places_init(&sources, NULL, workspace)', 'policy_places_init(&sources, NULL, NULL)', 'user',
      'view_states/a_workspace_policy_made_later')

# The kernel's side

guard('root is refused the name', 'fs/fuse_ops.c', 'if (r == 0 && e.ino && e.guarded && !(e.attr.mode & 0111) && caller_overrides_modes(req) && !caller_only_looks(req)) {',
      'if (r == 0 && e.ino && e.guarded && !(e.attr.mode & 0111) && caller_overrides_modes(req) && !caller_only_looks(req) && false) {', 'root',
      'view_bytes/a_look_opens_nothing view_bytes/mmap')
guard('a denied name is not cached', 'fs/fuse_ops.c', '.entry_timeout = e->guarded ? 0 :', '.entry_timeout =', 'root',
      'view_bytes/a_look_opens_nothing')
guard('attributes of a denied node are not cached', 'fs/fuse_ops.c', 'return e->guarded ? 0 : e->attr_cacheable', 'return e->attr_cacheable', 'root',
      'view_bytes/open_and_read view_bytes/open_by_handle')

# Rules

guard('the most closed layer', 'rules/policy.c', '		a = MAX(a, layer_action(p, m, i));', '		a = i == POLICY_USER ? layer_action(p, m, i) : a;', 'user',
      'view_states/workspace_policy_that_loosens')
guard('a workspace file is a layer of its own', 'rules/policy_load.c', 'add_layer(l, policy, POLICY_WORKSPACE, profile_file_leaf(f)', 'add_layer(l, policy, POLICY_USER, profile_file_leaf(f)', 'user',
      'view_states/policy_made_by_the_agent')
guard('a workspace file is no link', 'rules/policy_load.c', 'f = load_file(path, false, &e);', 'f = load_file(path, true, &e);', 'user',
      'view_states/policy_made_by_the_agent')
guard('a name is no file', 'rules/policy_load.c', 'return strchr(profile, \'/\') || g_str_has_suffix(profile, ".ini");',
      'return strchr(profile, \'/\') || g_str_has_suffix(profile, ".ini") || g_file_test(profile, G_FILE_TEST_IS_REGULAR);', 'user',
      'view_states/profile_named_like_a_file_of_the_workspace')
guard('the end of a stored policy', 'rules/policy_text.c', 'if (ok && !g_str_has_suffix(text, "\\n" END "\\n"))', 'if (false)', 'user',
      'view_states/mistakes_in_a_policy')
guard('an action that is none', 'rules/profile.c', '''	if (!action_from_name(item->key, &l.action))
		return fail(error, x->file, item->line,
			    "unknown action''', '''	if (!action_from_name(item->key, &l.action))
		return true;
	if (!*item->key)
		return fail(error, x->file, item->line,
			    "unknown action''', 'user',
      'view_states/mistakes_in_a_policy')
guard('an expression at its limit closes', 'rules/pattern.c', 'return rc == PCRE2_ERROR_NOMATCH ? PATTERN_NO : PATTERN_UNSURE;', 'return PATTERN_NO;', 'user',
      'view_states/expressions_that_backtrack')
guard('an expression at its limit does not open', 'rules/rule_list.c', 'if (rule_list_get(l, rule)->action > action) {', 'if (rule_list_get(l, rule)->action != action) {', 'user',
      'view_states/expressions_that_backtrack')
guard('all rules are in the index', 'rules/rule_list.c', '		try_index(&q, &l->by_path, text, s->len);', '', 'user',
      'view_states/ten_thousand_rules')
guard('case by Unicode', 'rules/pattern.c', '(nocase ? PCRE2_CASELESS : 0)', '(nocase ? 0 : 0)', 'user',
      'view_names/case_and_unicode')
guard('case outside of ASCII in names', 'rules/pattern.c', '(p->ascii_shape && s->is_ascii)', 'p->ascii_shape', 'user',
      'view_names/case_and_unicode')
guard('case outside of ASCII in the index', 'rules/pattern.c', ' && !strchr("kKsS", p[n])', '', 'user',
      'view_names/case_and_unicode')
guard('a dot is a newline too', 'rules/pattern.c', 'PCRE2_DOTALL | ', '', 'user',
      'view_names/newlines_and_stray_bytes')
guard('the end is the end', 'rules/pattern.c', 'PCRE2_DOLLAR_ENDONLY | ', '', 'user',
      'view_names/newlines_and_stray_bytes')
guard('a stray byte is a character', 'rules/pattern.c', '	s->text = s->is_ascii ? NULL : make_utf8(s->path, s->len, &s->text_len);', '	s->text = NULL;', 'user',
      'view_names/newlines_and_stray_bytes')

# What the commands show and do

guard('a difference leaves out what is denied', 'tools/attach.c', 'return action < ACTION_MASK || (is_dir', 'return action < ACTION_COUNT || (is_dir', 'user',
      'view_states/commit_of_what_may_not_be_changed view_states/names_of_deleted_denied_files view_states/output_of_the_commands')
guard('a difference leaves out what is masked', 'tools/attach.c', 'return action < ACTION_MASK || (is_dir', 'return action < ACTION_DENY || (is_dir', 'user',
      'view_states/commit_of_what_may_not_be_changed view_states/denied_file_in_an_older_snapshot '
      'view_states/names_of_deleted_denied_files')
guard('a difference knows where things came from', 'tools/attach.c', '''	return shows(user, path, is_dir) &&
	       (!lower_path || g_str_equal(lower_path, path) || shows(user, lower_path, is_dir));''', '''	(void)lower_path;
	return shows(user, path, is_dir);''', 'user',
      'view_states/commit_of_a_directory_that_holds_it view_states/denied_file_in_an_older_snapshot view_states/output_of_the_commands')
guard('scratch stays out', 'tools/attach.c', '		return a->with_scratch;', '		return true;', 'user',
      'view_bytes/scratch_is_no_way_around_review')
guard('the gate finds links that leave', 'gate/check_modes.c', "return *target == '/' ? WALK_OUTSIDE : WALK_INSIDE;", 'return WALK_INSIDE;', 'user',
      'view_names/symlink_out_of_the_view')
guard('the gate listens to the user', 'gate/gate_config.c', 'm->config->checks = c.bits | (layer == POLICY_USER ? 0 : m->config->checks);', 'm->config->checks = c.bits;', 'user',
      'view_states/workspace_policy_that_loosens')

guard('a message moves no cursor', 'tools/output.c', '} else if (*p < 0x20 || *p == 0x7f) {', '} else if (*p == 0) {', 'user',
      'view_states/names_that_steer_a_terminal')
guard('names are quoted', 'snapshot/diff.c', 'else if (c < 0x20 || c >= 0x7f)', 'else if (c == 0)', 'user',
      'view_states/names_that_steer_a_terminal')

# What waits for a human

guard('a read asks', 'fs/guard.c', 'return v->action == ACTION_ASK ? GUARD_ASKS : guard_look(v);', 'return guard_look(v);', 'user',
      'ask/time_runs_out ask/mapping_and_running_ask unit/question/test_nobody_to_ask')
guard('a change asks', 'fs/guard.c', 'action_asks(v->action) ? GUARD_ASKS : 0;', '0;', 'user',
      'ask/time_runs_out ask/changes_ask ask/privileged_manual')
guard('a change asks where a read does not', 'fs/guard.c', 'return a == ACTION_ASK || a == ACTION_ASK_CHANGE;', 'return a == ACTION_ASK;', 'user',
      'ask/time_runs_out ask/changes_ask ask/privileged_manual')
guard('what may not be changed asks nothing', 'rules/policy.c', '			granted = MAX(granted, a);', '			;', 'user',
      'ask/a_yes_opens_no_other_layer')
guard('extended attributes ask', 'fs/overlay_xattr.c', '		r = ask_to_read(o, n);', '		r = 0;', 'user',
      'ask/reading_without_read')
guard('holes ask', 'fs/overlay_data.c', '-EOPNOTSUPP : ask_to_read(o, n);', '-EOPNOTSUPP : guard_look(&n->verdict);', 'user',
      'ask/reading_without_read')
guard('no change before all is settled', 'fs/overlay_core.c', '	int r = ask_settle(o);', '	int r = 0;', 'user',
      'ask/time_runs_out ask/changes_ask')
guard('the change of a name in a directory that asks', 'fs/overlay_ask.c', 'return ask_about_name(o, guard_create(v), dir, name, n);',
      'return ask_about_name(o, guard_create(v) == GUARD_ASKS ? 0 : guard_create(v), dir, name, n);', 'user',
      'ask/changes_ask')
guard('nobody to ask is a no', 'fs/overlay_ask.c', 'return o->questions && o->audit ? 0 : -EACCES;', 'return o->questions && o->audit ? 0 : 0;', 'user',
      'unit/question/test_nobody_to_ask')
guard('no answer is a no', 'fs/question.c', 'end(q, question, QUESTION_TIMEOUT, NULL);', 'end(q, question, QUESTION_ALLOW, NULL);', 'user',
      'ask/time_runs_out unit/question/test_time_runs_out')
guard('the end of the view is a no', 'fs/question.c', 'QUESTION_CLOSED, NULL);', 'QUESTION_ALLOW, NULL);', 'user',
      'ask/an_unmount_ends_the_waiting unit/question/test_equal_questions_are_one')
guard('too many questions are a no', 'fs/question.c', 'hold_all(q, about, &about->asker, false);', 'hold_all(q, about, &about->asker, true);', 'user',
      'ask/too_many_wait unit/question/test_not_too_many_wait')
guard('a no is kept', 'fs/question.c', '.allow = allow };', '.allow = true };', 'user',
      'ask/time_runs_out unit/question/test_a_no_counts_for_the_process')
guard('an answer is for the process that asked', 'fs/question.c', 'a->pid != 0 && a->pid == b->pid && a->started == b->started;', 'a->pid != 0 && b;', 'user',
      'unit/question/test_once_is_for_who_asked_and_a_while')
guard('a number that is used again is another process', 'fs/question.c', ' && a->started == b->started;', ';', 'user',
      'unit/question/test_once_is_for_who_asked_and_a_while')
guard('an answer for a while', 'fs/question.c', '		if (h->until <= now)', '		if (h->until <= now && false)', 'user',
      'unit/question/test_once_is_for_who_asked_and_a_while')
guard('pages are no answer for the next', 'fs/overlay_ask.c', 'invalidator_inode(o->invalidator, n->read_ino, true);', ';', 'user',
      'ask/once_counts_for_the_process_that_asked')
guard('an answer is for one object', 'fs/overlay_ask.c', 'lower && strcmp(lower, path) != 0 ? "//" : NULL, lower, NULL);', 'NULL, lower, NULL);', 'user',
      'ask/an_answer_is_for_one_object')
guard('only the network is asked for from outside', 'fs/control.c', 'g_strcmp0(about.kind, "network") != 0 || ', '', 'user',
      'unit/question/test_only_the_network_is_asked_for')
guard('deletions: a removal', 'fs/overlay_name.c', '		r = ask_to_delete(o, c.node);', '		r = 0;', 'user',
      'ask/bulk_deletions_ask unit/question/test_beyond_the_limit_deletions_ask')
guard('deletions: a rename over something', 'fs/overlay_name.c', 'return r < 0 ? r : ask_to_delete(o, t);', 'return r;', 'user',
      'ask/bulk_deletions_ask unit/question/test_beyond_the_limit_deletions_ask')
guard('deletions: in a minute', 'fs/deletions.c', 'last_minute(d) >= d->limit_per_minute', 'last_minute(d) > d->limit_per_minute', 'user',
      'ask/bulk_deletions_ask unit/question/test_deletions')
guard('deletions: in all', 'fs/deletions.c', 'd->total >= d->limit', 'd->total > d->limit', 'user',
      'unit/question/test_deletions')
guard('deletions: one yes is no blank cheque', 'fs/overlay_ask.c', '		questions_use_up(o->questions, key, who);\n', '', 'user',
      'ask/bulk_deletions_ask unit/question/test_beyond_the_limit_deletions_ask')
guard('deletions: a no outlives the minute', 'fs/overlay_ask.c', 'return questions_known(o->questions, DELETIONS_KEY, &who) == QUESTION_NO;', 'return false;', 'user',
      'unit/question/test_beyond_the_limit_deletions_ask')
guard('the workspace has no say in what is asked', 'rules/policy_load.c', 'if (strcmp(s->section, "ask") != 0)', 'if (*s->section)', 'user',
      'ask/the_workspace_has_no_say')

# The controls

guard('the socket knows its owner', 'fs/control_socket.c', '(uid == geteuid() || uid == 0) && peer_is_outside(pid, uid)', 'peer_is_outside(pid, uid)', 'root',
      'view_states/control_socket_of_another_user')
guard('the socket hangs up on who is confined', 'fs/control_socket.c', '(uid == geteuid() || uid == 0) && peer_is_outside(pid, uid)', '(uid == geteuid() || uid == 0)', 'user',
      'ask/who_is_confined_cannot_answer')
guard('another user namespace is inside', 'fs/control_socket.c', 'if (pid > 0 && same_namespace(pid, "user", &e))', 'if (pid > 0 && (same_namespace(pid, "user", &e) || !e))', 'user',
      'ask/who_is_confined_cannot_answer')
guard('another process namespace is inside', 'fs/control_socket.c', 'return same_namespace(pid, "pid", &e);', 'return true;', 'root',
      'ask/who_is_confined_cannot_answer')
guard('who hides his namespaces is inside', 'fs/control_socket.c', 'e == EACCES && uid == 0 && geteuid() != 0', 'e == EACCES', 'user',
      'ask/who_is_confined_cannot_answer')
guard('the mode of the socket', 'fs/control_socket.c', 'mask = umask(0177);', 'mask = umask(0);', 'user',
      'view_states/controls_are_not_in_the_view')
guard('the mode of directories', 'tools/paths.c', 'g_mkdir_with_parents(dir, 0700)', 'g_mkdir_with_parents(dir, 0755)', 'user',
      'view_states/controls_are_not_in_the_view')
guard('no store in the workspace', 'tools/mounting.c', 'return check_own_place(p, "the store", p->state, "XDG_STATE_HOME", error) &&', 'return', 'user',
      'view_states/controls_inside_of_the_workspace')
guard('no socket in the workspace', 'tools/mounting.c', ' &&\n	       check_own_place(p, "the control socket", p->runtime, "XDG_RUNTIME_DIR", error)', '', 'user',
      'view_states/controls_inside_of_the_workspace')

# What a confined program sees, and may call; each of these attacks is also tried by itself without its guard, see redteam.py. Not here:
# what the kernel refuses as well to whoever has no capabilities (raw sockets), or does not have at all on most machines (old families).

guard('nothing outlives a run', 'tools/run/confined.c', '"--die-with-parent", "--unshare-user",', '"--unshare-user",', 'user',
      'redteam/nothing_outlives_a_kill')
guard('no mount while a view is taken down', 'tools/view_lock.c', 'if (!is_left(name))', 'if (!is_left(name) || *name)', 'user',
      'unit/tools-view-lock/test_change_waits')
guard('a command keeps the view it works with', 'tools/run/hold.c', 'if (view_lock_try(h->name, VIEW_USE, VIEW_EXCLUSIVE))', 'if (h->name)', 'user',
      'redteam/a_command_keeps_the_view_of_the_last_run')
guard('no other processes', 'tools/run/confined.c', '"--unshare-pid", ', '', 'user',
      'redteam/other_processes')
guard('no network', 'tools/run/confined.c', '"--unshare-net",     ', '', 'user',
      'redteam/sockets_of_other_programs')
guard('no capabilities', 'tools/run/confined.c', '"--cap-drop",    "ALL",', '"--cap-add", "CAP_CHOWN",', 'root',
      'redteam/system_calls')
guard('no descriptors of the caller', 'tools/run/confined.c', ' || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0', '', 'user',
      'redteam/open_files_are_no_way_out')
guard('the filter of system calls', 'tools/run/confined.c', '	add_number(argv, "--seccomp", r->filter);\n', '', 'user',
      'redteam/mounts_and_namespaces redteam/system_calls')
guard('filter: calls by name', 'tools/run/syscalls.c', 'int r = refuse_names(ctx, refused, G_N_ELEMENTS(refused), EPERM);', 'int r = refuse_names(ctx, refused, 0, EPERM);', 'user',
      'redteam/system_calls')
guard('filter: io_uring', 'tools/run/syscalls.c', 'r = refuse_names(ctx, absent, G_N_ELEMENTS(absent), ENOSYS);', 'r = refuse_names(ctx, absent, 0, ENOSYS);', 'user',
      'redteam/system_calls')
guard('filter: namespaces', 'tools/run/syscalls.c', 'r = refuse(ctx, "unshare", EPERM, &unshare_flags, 1);', 'r = 0;\n		(void)unshare_flags;', 'user',
      'redteam/mounts_and_namespaces')
guard('filter: namespaces of a child', 'tools/run/syscalls.c', 'r = refuse(ctx, "clone", EPERM, &clone_flags, 1);', '(void)clone_flags;', 'user',
      'redteam/mounts_and_namespaces')
guard('filter: families of sockets', 'tools/run/syscalls.c', '		r = refuse(ctx, "socket", EAFNOSUPPORT, &above, 1);', '		(void)above;', 'user',
      'redteam/system_calls')
guard('filter: typing', 'tools/run/syscalls.c', 'return r == 0 ? refuse_typing(ctx) : r;', 'return r == 0 && !refuse_typing ? 1 : r;', 'user',
      'redteam/typing_into_the_terminal')
guard('secrets of the system', 'tools/run/places.c', 'if (is_secret(below + skip, &st) || (S_ISDIR(st.st_mode) && depth == 0))', 'if (S_ISDIR(st.st_mode) && (depth == 0 || is_secret(below + skip, &st)))', 'root',
      'redteam/secrets_of_the_system')
guard('the system is read-only', 'tools/run/places.c', '			add(argv, "--ro-bind", dir, dir, NULL);\n	}', '			add(argv, "--bind", dir, dir, NULL);\n	}', 'root',
      'redteam/the_system_cannot_be_written')
guard('the root is read-only', 'tools/run/places.c', '"--remount-ro", "/", "--chdir",', '"--chdir",', 'user',
      'redteam/the_system_cannot_be_written')
guard('a temporary directory of its own', 'tools/run/places.c', '	add_memory(argv, p, "1777", "/tmp");', '	add(argv, "--bind", "/tmp", "/tmp", NULL);', 'user',
      'redteam/files_of_the_host redteam/sockets_of_other_programs')
guard('a workspace asks for no home', 'tools/run/places.c', 'return s->layer == POLICY_USER && g_str_equal(s->section, "run") &&', 'return g_str_equal(s->section, "run") &&', 'user',
      'redteam/home_by_the_profile')
guard('own places are not shown', 'tools/run/places.c', 'if (!real || overlap(real, path)) {', 'if (!real) {', 'user',
      'redteam/own_places_cannot_be_let_in')
guard('the view, not the workspace', 'tools/run/places.c', 'add(argv, "--bind", p->sandbox->mountpoint, p->sandbox->workspace,', 'add(argv, "--bind", p->sandbox->workspace, p->sandbox->workspace,', 'user',
      'redteam/the_workspace_itself')
guard('a git file that leads elsewhere', 'tools/run/git_dir.c', '!paths_below(dir, common) || !is_repository(common)', '!paths_below(dir, common)', 'user',
      'redteam/a_git_file_that_lies')
guard('a git file that names another repository', 'tools/run/git_dir.c', ' || !belongs_to(dir, common, workspace))', ' || (!belongs_to(dir, common, workspace) && !common))', 'user',
      'redteam/a_git_file_that_names_another_repository')
guard('the environment', 'tools/run/environment.c', '	let_through(&env, names, allowed, G_N_ELEMENTS(allowed));', '	let_through(&env, names, (const char *const[]){ "*" }, allowed[0] ? 1 : 0);', 'user',
      'redteam/environment')
guard('a directory as a stream', 'tools/run/streams.c', 'if (S_ISDIR(st.st_mode)) {', 'if (S_ISSOCK(st.st_mode)) {', 'user',
      'redteam/open_files_are_no_way_out')
guard('a file as a stream', 'tools/run/streams.c', 'return isatty(fd) || is_null_device(st) || (S_ISFIFO(st->st_mode) && !counted);', 'return isatty(fd) || is_null_device(st) || !counted || true;', 'user',
      'redteam/open_files_are_no_way_out')
guard('never unconfined', 'tools/run/confined.c', '		return platform_explain(r->first, error);', '		*ret_status = 0;', 'user',
      'redteam/never_unconfined')

# The network. The resolver that lies, and the ports 80 and 443, are in the unit tests: see network.py.

guard('a host has to be let through', 'tools/run/net_proxy.c', '	if (!pass(c, network_name(p->rules, t->name, t->port), t->text, t->name))', '	if (!t->name)', 'user',
      'network/attacks_through_the_proxy')
guard('what no rule names is refused', 'rules/network.c', 'which == POLICY_USER ? NETWORK_DENY : NETWORK_ALLOW;', 'which == POLICY_USER ? NETWORK_ALLOW : NETWORK_ALLOW;', 'user',
      'unit/network/test_verdicts')
guard('an address has to be let through', 'tools/run/net_proxy.c', 'pass_address(c, network_literal(p->rules, &t->address, t->port))',
      'pass_address(c, network_address(p->rules, &t->address, t->port))', 'user',
      'unit/net-proxy/test_hostile_input')
guard('where a name leads is looked at', 'tools/run/net_proxy.c', '		if (v.action == NETWORK_ALLOW)\n', '		if (v.rule || !v.rule)\n', 'user',
      'network/attacks_through_the_proxy unit/net-proxy/test_addresses')
guard('the address that was looked at', 'tools/run/net_proxy.c', '	for (unsigned i = 0; i < all->len && r < 0; i++) {', '''	if (c->target.name)
		b->resolve(b->user, c->target.name, g_array_set_size(all, 0));
	for (unsigned i = 0; i < all->len && r < 0; i++) {''', 'user',
      'unit/net-proxy/test_addresses')
guard('private addresses are refused', 'rules/network.c', 'else if (kind && i == POLICY_USER)', 'else if (kind && i == POLICY_LAYERS)', 'user',
      'network/attacks_through_the_proxy unit/network/test_resolved_addresses unit/net-proxy/test_addresses')
guard('a wide range opens no private one', 'rules/network.c', '&& !names_kind(r, kind))', '&& kind->never)', 'user',
      'network/attacks_through_the_proxy unit/network/test_verdicts')
guard('addresses in other addresses', 'rules/address.c', '		return carried;\n', '		return *a;\n', 'user',
      'unit/network/test_resolved_addresses unit/net-proxy/test_addresses')
guard('ports: those of the web', 'rules/network.c', 'is_web_port(port);\n}\n\n/* Does', 'port;\n}\n\n/* Does', 'user',
      'unit/network/test_verdicts')
guard('ports: that of the rule', 'rules/network.c', 'return r->pattern.port == port;', 'return port;', 'user',
      'network/attacks_through_the_proxy unit/network/test_verdicts')
guard('ports: those of services', 'rules/network.c', '!network_port_kind(port) :', 'port :', 'user',
      'unit/network/test_verdicts')
guard('the most closed layer of the network', 'rules/network.c', 'return b.action > a.action ||', 'return b.rule ||', 'user',
      'network/workspace_can_only_close unit/network/test_layers')
guard('a human is asked', 'tools/run/net_proxy.c', '(v.action == NETWORK_ASK && ask(c, subject))', 'v.action == NETWORK_ASK', 'user',
      'network/a_human_is_asked unit/net-proxy/test_asking')
guard('a no of a human', 'tools/run/net_ask.c', 'yes = g_str_equal(verdict, "allow");', 'yes = *verdict;', 'user',
      'network/a_human_is_asked')
guard('nobody to ask about the network', 'tools/run/net_ask.c', '''nobody can be asked: %s", failure->message);
		return false;''', '''nobody can be asked: %s", failure->message);
		return true;''', 'user',
      'unit/net-proxy/test_asking_nobody')
guard('in the audit before it leaves', 'tools/run/net_proxy.c', '	if (!record_request(c, all))\n', '	if (!record_request(c, all) && !all)\n', 'user',
      'unit/net-proxy/test_audit_comes_first')
guard('TLS asks for the host', 'tools/run/net_proxy.c', '	if (*hello->name && !(', '	if (!*hello->name && !(', 'user',
      'network/tls unit/net-proxy/test_tls')
guard('TLS says its host', 'tools/run/net_proxy.c', 'if (!*hello->name && (t->required && t->target->name))', 'if (!t->target)', 'user',
      'unit/net-proxy/test_tls')
guard('to port 443 goes TLS', 'tools/run/net_proxy.c', 'state == CLIENT_HELLO_BAD ? "what', 'state == CLIENT_HELLO_BAD && !t ? "what', 'user',
      'unit/net-proxy/test_tls')
guard('a name in two records is seen', 'tools/run/client_hello.c', '!message.bad && !left(&message) && read_body(body, ret) ?', 'read_body(body, ret) || true ?', 'user',
      'unit/net-parsers/test_hello_names unit/net-proxy/test_tls')
guard('a second name is seen', 'tools/run/client_hello.c', 'if (named || !read_name(extension, ret))', 'if (!read_name(extension, ret))', 'user',
      'unit/net-parsers/test_hello_names')
guard('to port 80 goes HTTP', 'tools/run/net_proxy.c', '	if (c->target.port == PORT_HTTP)', '	if (!c->target.port)', 'user',
      'unit/net-proxy/test_tunnel_to_port_80')
guard('the Host field', 'tools/run/http_request.c', 'return net_target_parse(&named, host, WEB_PORT) && net_target_equal(&named, target)', 'return net_target_parse(&named, host, WEB_PORT) || true', 'user',
      'network/attacks_through_the_proxy unit/net-parsers/test_requests unit/net-proxy/test_tunnel_to_port_80')
guard('one Host field', 'tools/run/http_request.c', '	if (!find_one(p, "Host", &host))', '	if (!find_one(p, "Host", &host) && !host)', 'user',
      'network/attacks_through_the_proxy unit/net-parsers/test_requests')
guard('one length of a body', 'tools/run/http_request.c', ' || (length && coding))', ')', 'user',
      'network/attacks_through_the_proxy unit/net-parsers/test_requests')
guard('one request of a connection', 'tools/run/net_proxy.c', 'http_body_is_done(body) ? NET_FILTER_LAST : NET_FILTER_PASS;\n	return n;', 'NET_FILTER_PASS;\n	return bad ? n : size;', 'user',
      'unit/net-proxy/test_no_second_request')
guard('another protocol only by consent', 'tools/run/net_proxy.c', 'if (q->upgrade && is_upgraded(c)) {', 'if (q->upgrade) {', 'user',
      'unit/net-proxy/test_upgrade_without_consent')
guard('the files of the proxy', 'tools/run/landlock.c', 'ok = syscall(RESTRICT_SELF, fd, 0) == 0;', 'ok = true;', 'user',
      'unit/net-process/test_files')
guard('the system calls of the proxy', 'tools/run/syscalls.c', 'fill_proxy(ctx) == 0 && seccomp_load(ctx) == 0;', 'fill_proxy(ctx) == 0;', 'user',
      'network/the_process_of_the_proxy unit/net-process/test_calls')
guard('the proxy runs nothing', 'tools/run/syscalls.c', 'refuse_names(ctx, more, G_N_ELEMENTS(more), EPERM);', 'refuse_names(ctx, more, 0, EPERM);', 'user',
      'unit/net-process/test_calls')
guard('the proxy has threads only', 'tools/run/syscalls.c', '		r = refuse(ctx, "clone", EPERM, &no_thread, 1);', '		(void)no_thread;', 'user',
      'unit/net-process/test_calls')
guard('the proxy has no local services', 'tools/run/syscalls.c', 'return r == 0 ? refuse(ctx, "socket", EPERM, &is_unix, 1) : r;', '(void)is_unix;\n	return r;', 'user',
      'unit/net-process/test_calls')
guard('the user of the proxy', 'tools/run/net_process.c', '	if (geteuid() == 0 &&\n', '	if (geteuid() > 0 &&\n', 'root',
      'network/the_process_of_the_proxy')
guard('the proxy is confined before it is given anything', 'tools/run/net_process.c', 'return landlock_enter(readable, G_N_ELEMENTS(readable)) && syscalls_enter_proxy();', 'return true;', 'user',
      'network/the_process_of_the_proxy')

# What holds for a process that takes over

guard('done once', 'fs/overlay_heritage.c', 'return request.again && o->heritage && ledger_is_done(', 'return !request.unique && o->heritage && ledger_is_done(', 'user',
      'takeover/a_writer_is_not_disturbed')
guard('a prepared change is asked for', 'fs/ledger.c', 'ledger_settle(e, committed(e->ino, e->ctime, user));', 'ledger_settle(e, !committed(0, e->ctime, user));', 'user',
      'unit/roster/test_ledger')
guard('the verdict of what has no name', 'fs/overlay_heritage.c', 'if (!n->names || v.action > n->verdict.action)', 'if (n->names && v.action > n->verdict.action)', 'user',
      'takeover/rules_and_limits_stay_those_of_the_mount')
guard('deletions are counted on', 'fs/overlay_heritage.c', '	o->deletions = &h->deletions;\n', '', 'user',
      'takeover/rules_and_limits_stay_those_of_the_mount')
guard('the limit of the disk as it was set', 'fs/service.c', 's->takes_over ? s->heritage->disk_limit : s->options->disk_limit', 's->options->disk_limit', 'user',
      'takeover/rules_and_limits_stay_those_of_the_mount')
guard('the audit keeps what it has', 'fs/service.c', '		options.keep_time = options.keep_bytes = 0;', '		options.keep_bytes = 0;', 'user',
      'takeover/rules_and_limits_stay_those_of_the_mount')
guard('the store is locked in between', 'fs/service.c', '[KEEPER_LOCK] = store_lock(overlay_store(s->view.overlay)) };', '[KEEPER_LOCK] = device };', 'user',
      'takeover/the_store_is_not_free_meanwhile')
guard('what is open without a name stays', 'snapshot/store.c', '		if (h->held(ino, h->user))', '		if (!h->held(ino, h->user))', 'user',
      'takeover/what_is_open_goes_on')
guard('no process for what kills each', 'fs/keeper.c', 'return many || k->futile >= KEEPER_FUTILE;', 'return many;', 'user',
      'takeover/what_kills_each_is_not_served_for_ever')
