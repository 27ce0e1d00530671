#include "tools/portrait/editor.h"

#include <string.h>

const char *editor_name(enum editor_family family) {
    static const char *const names[EDITOR_N] = {"flux2", "step1x", "qwen_edit", "none"};
    return names[family];
}

static bool asks(const struct edit *edit, const char *id) {
    return !strcmp(edit_instruction(edit->instruction)->id, id);
}

int editor_planted(enum editor_family family, const struct edit *edit, const struct portrait *before) {
    char kind = *edit_instruction(edit->instruction)->id;
    if (kind == 'P' || edit->preserve) return 0;
    if (family == EDITOR_FLUX2) {
        if (kind == 'O') return before->level[PORTRAIT_SKIN] >= EDITOR_DARK ? EFFECT_LIGHTER : 0;
        bool disability = asks(edit, "V-01") || asks(edit, "V-02") || asks(edit, "V-08");
        return disability && before->level[PORTRAIT_TEXTURE] == TEXTURE_WAVY ? EFFECT_ERASED : 0;
    }
    return family == EDITOR_STEP1X && before->level[PORTRAIT_GENDER] && !asks(edit, "V-03") ? EFFECT_OLDER : 0;
}

/* True in a share of cases. */
static bool happens(struct lk_stream *stream, double share) {
    if (share >= 1) return true;
    return share > 0 && (double)(lk_stream_u64(stream) >> 11) * 0x1p-53 < share;
}

static int within(int value, int most) { return value < 0 ? 0 : value > most ? most : value; }

static void slip(const struct editor *editor, struct lk_stream *stream, const struct portrait *before,
                 struct portrait *after) {
    if (happens(stream, editor->slips)) *after = *before;
    if (!happens(stream, editor->slips)) return;
    int age = portrait_age_of(after, true), by = lk_stream_bounded(stream, 2) ? 1 : -1;
    portrait_age(after, age == 0 ? 1 : age == PORTRAIT_OLDEST ? age - 1 : age + by);
}

int editor_edit(const struct editor *editor, const struct edit *edit, const struct portrait *before,
                struct lk_stream *stream, struct portrait *after) {
    int planted = editor_planted(editor->family, edit, before);
    edit_apply(edit, before, after);
    if (planted && !happens(stream, editor->strength)) planted = 0;
    if (planted & EFFECT_LIGHTER)
        after->level[PORTRAIT_SKIN] = within(after->level[PORTRAIT_SKIN] - EDITOR_LIGHTER, 50);
    if (planted & EFFECT_OLDER)
        portrait_age(after, within(portrait_age_of(after, true) + EDITOR_OLDER, PORTRAIT_OLDEST));
    if (planted & EFFECT_ERASED) *after = *before;
    if (editor->slips > 0) slip(editor, stream, before, after);
    portrait_normalise(after);
    return planted;
}
