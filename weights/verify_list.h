/* What `verify` has to look at: the files of a model folder and the digests known for them. */
#pragma once

#include "weights/verify.h"

/* Every file below folder, sorted by path, with `expected` as the HF library has kept it (or "" for a manifest to fill
 * in) and result LK_VERIFY_NO_DIGEST; files that cannot be reached (a broken link, a link out of the folder or to a
 * folder) are LK_VERIFY_UNREADABLE. */
enum lk_code lk_verify_list(struct lk_verify_report *out, const char *folder, bool kept_digests);

/* Adds the digests of a manifest in sha256sum's format; files that it names and the folder lacks are added as
 * LK_VERIFY_UNREADABLE. */
enum lk_code lk_verify_add_manifest(struct lk_verify_report *report, const char *folder, const char *manifest_path);
