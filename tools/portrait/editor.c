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

static int below(struct lk_stream *stream, int n) { return (int)lk_stream_bounded(stream, (uint64_t)n); }

/* Another level of the field than it has. */
static void another(struct lk_stream *stream, int field, struct portrait *p) {
    int n = portrait_field_levels(field);
    p->level[field] = (p->level[field] + 1 + below(stream, n - 1)) % n;
}

static void one_fault(const struct portrait *before, struct lk_stream *stream, struct portrait *after) {
    static const int looks[] = {PORTRAIT_TEXTURE, PORTRAIT_BROWS, PORTRAIT_FRINGE};
    int by = 1 + below(stream, 4), sign = below(stream, 2) ? 1 : -1;
    struct edit other = {.instruction = below(stream, EDITS_N_STUDY)};
    switch (below(stream, 10)) {
    case 0:
        *after = *before;
        break;
    case 1:
        edit_apply(&other, before, after);
        break;
    case 2: /* half of it */
        for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
            if (below(stream, 2)) after->level[f] = before->level[f];
        break;
    case 3:
    case 4:
        after->level[PORTRAIT_SKIN] = within(after->level[PORTRAIT_SKIN] + sign * (3 + below(stream, 25)), 50);
        break;
    case 5:
    case 6:
        portrait_age(after, within(portrait_age_of(after, true) + sign * by, PORTRAIT_OLDEST));
        break;
    case 7:
        another(stream, below(stream, 3) ? PORTRAIT_GENDER : PORTRAIT_BEARD, after);
        break;
    case 8:
        for (int i = 0; i < 3; i++)
            if (below(stream, 2)) another(stream, looks[i], after);
        break;
    default:
        another(stream, PORTRAIT_N_IDENTITY + below(stream, PORTRAIT_N_FIELDS - PORTRAIT_N_IDENTITY), after);
    }
    portrait_normalise(after);
}

void editor_fault(const struct portrait *before, struct lk_stream *stream, struct portrait *after) {
    for (int n = below(stream, 5) < 2 ? 2 : 1; n; n--) one_fault(before, stream, after);
}
