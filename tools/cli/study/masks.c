/* Masks that a study draws for its sources, as the edits of a worker see them. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/face/yunet.h"
#include "tools/cli/study/runner.h"

void study_masks_free(struct study_masks *m) {
    if (m->net) lk_yunet_close(m->net);
    m->net = NULL;
}

static enum lk_code open_net(struct study_masks *m, const struct lk_study_drawn *drawn) {
    char sha256[65];
    if (m->net || !drawn->faces) return LK_OK;
    LK_TRY(lk_digest_file(LK_DIGEST_SHA256, drawn->faces, sha256));
    if (strcmp(sha256, drawn->net_sha256) != 0)
        return lk_fail(LK_E_CHANGED, "%s: has changed since the run was begun", drawn->faces);
    return lk_yunet_open(&m->net, drawn->faces);
}

/* Whole or not at all; workers that draw the same one write the same bytes. */
static enum lk_code put(const char *folder, const char *path, const struct lk_image *mask, const char *text) {
    const struct lk_png_text texts[] = {{"likeness mask", text}};
    LK_TRY(study_folders_make(folder));
    return lk_png_write(path, mask, texts, 1);
}

enum lk_code study_mask_draw(struct study_masks *m, const struct study_run *run, struct study_job *job) {
    const struct lk_study_job *study = &job->study;
    const struct lk_study_source *source = lk_study_source(run->study, study->sources[0]);
    const struct lk_study_drawn *drawn = study->drawn;
    struct lk_image mask = {0};
    char *text = NULL;
    lk_free(job->mask);
    LK_TRY(open_net(m, drawn));
    LK_TRY(lk_face_mask_make(&mask, &text, &drawn->recipe, &job->images[0], study->source_files[0], source->sha256,
                             m->net, drawn->net_sha256));
    char *folder = lk_format("%s/masks/%s", run->folder, study->model_key);
    job->mask = folder ? lk_format("%s/%s.png", folder, source->id) : NULL;
    enum lk_code rc = job->mask ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = put(folder, job->mask, &mask, text);
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, job->mask, job->mask_sha256);
    job->job.request.mask = job->mask;
    lk_free(folder);
    lk_free(text);
    lk_image_free(&mask);
    return rc;
}
