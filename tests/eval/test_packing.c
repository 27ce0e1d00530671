/* Packing into HITs and tasks against the tables the study's documents print, a rater's order, and the costs. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/study/packing.h"
#include "tests/common/test.h"

static struct lk_hits pack(int64_t items, int raters, int per_hit, int gold, enum lk_packing rule) {
    struct lk_hits hits;
    assert_ok(lk_pack_hits(items, raters, per_hit, gold, rule, &hits));
    return hits;
}

static void hits_by_every_rule(void **state) {
    (void)state;
    const struct {
        int64_t items;
        int per_hit, gold;
        int64_t seed, ceil, packed, assignments;
    } cases[] = {{504, 40, 4, 38, 38, 14, 42}, {336, 40, 4, 25, 26, 10, 30}, {50, 25, 2, 6, 6, 3, 9}};
    for (int i = 0; i < 3; i++) {
        int64_t items = cases[i].items;
        assert_int_equal(pack(items, 3, cases[i].per_hit, 0, LK_PACKING_SEED).n_hits, cases[i].seed);
        assert_int_equal(pack(items, 3, cases[i].per_hit, 0, LK_PACKING_CEIL).n_hits, cases[i].ceil);
        assert_int_equal(pack(items, 3, cases[i].per_hit, 0, LK_PACKING_CEIL).n_assignments, cases[i].ceil);
        struct lk_hits packed = pack(items, 3, cases[i].per_hit, cases[i].gold, LK_PACKING_PACKED);
        assert_int_equal(packed.n_hits, cases[i].packed);
        assert_int_equal(packed.n_assignments, cases[i].assignments);
    }
    assert_int_equal(pack(100, 3, 40, 0, LK_PACKING_SEED).n_hits, 8);
    struct lk_hits hits;
    assert_fails(lk_pack_hits(10, 3, 4, 4, LK_PACKING_PACKED, &hits), LK_E_INPUT, "no room");
    assert_fails(lk_pack_hits(0, 3, 4, 0, LK_PACKING_CEIL, &hits), LK_E_INPUT, "at least 1");
}

static void tasks_of_fifty(void **state) {
    (void)state;
    int32_t order[500], blocked[500];
    bool seen[500] = {0};
    lk_pack_tasks(500, false, 42, order);
    lk_pack_tasks(500, true, 42, blocked);
    int moved = 0;
    for (int i = 0; i < 500; i++) {
        assert_int_equal(blocked[i], i);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
        moved += order[i] != i;
    }
    assert_true(moved > 450);
}

static void gold_is_never_first_never_adjacent(void **state) {
    (void)state;
    int first_place[40] = {0};
    for (int rater = 0; rater < 2000; rater++) {
        char participant[16];
        int32_t order[40], again[40];
        bool seen[40] = {0};
        snprintf(participant, sizeof participant, "p%d", rater);
        assert_ok(lk_task_order(42, participant, "3", 36, 4, order));
        assert_true(order[0] >= 0);
        for (int i = 0; i < 40; i++) {
            int slot = order[i] < 0 ? 35 - order[i] : order[i];
            assert_in_range(slot, 0, 39);
            assert_false(seen[slot]);
            seen[slot] = true;
            if (i) assert_false(order[i] < 0 && order[i - 1] < 0);
            if (order[i] < 0) first_place[i]++;
        }
        if (rater > 3) continue;
        assert_ok(lk_task_order(42, participant, "3", 36, 4, again));
        assert_memory_equal(order, again, sizeof order);
        assert_ok(lk_task_order(42, participant, "4", 36, 4, again));
        assert_memory_not_equal(order, again, sizeof order);
    }
    for (int i = 1; i < 40; i++) assert_in_range(first_place[i], 120, 300); /* 8000 / 39 = 205 expected */
    int32_t order[40];
    assert_ok(lk_task_order(42, "p", "t", 3, 3, order));
    assert_true(order[0] >= 0 && order[1] < 0 && order[2] >= 0 && order[3] < 0 && order[5] < 0);
    assert_fails(lk_task_order(42, "p", "t", 3, 4, order), LK_E_INPUT, "do not fit");
    assert_ok(lk_task_order(42, "p", "t", 0, 0, order));
    for (int n = 1; n <= 2; n++) {
        lk_alloc_fail_at(n);
        assert_int_equal(lk_task_order(42, "p", "t", 3, 1, order), LK_E_NOMEM);
        lk_alloc_fail_at(0);
    }
}

static void sides_are_even(void **state) {
    (void)state;
    int left = 0;
    for (int i = 0; i < 2000; i++) {
        char item[32];
        int arm;
        snprintf(item, sizeof item, "item%d", i);
        assert_ok(lk_left_arm(42, "p1", item, &arm));
        left += arm;
    }
    assert_in_range(left, 900, 1100);
}

static void costs_as_printed(void **state) {
    (void)state;
    const struct {
        const char *plan;
        double subtotal, fee, total, bonus;
    } cases[] = {{"000", 113.00, 22.60, 135.60, 10.35},
                 {"004", 106.50, 21.30, 127.80, 0},
                 {"001", 1200.00, 0, 1200.00, 0},
                 {"003", 90.00, 30.00, 120.00, 0},
                 {"000-packed", 132.00, 26.40, 158.40, 12.15},
                 {"pilot", 30.00, 0, 30.00, 0}};
    struct lk_study_cost cost;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lk_cost(lk_cost_plan(cases[i].plan), &cost);
        assert_true(fabs(cost.subtotal - cases[i].subtotal) < 1e-9 && fabs(cost.fee - cases[i].fee) < 1e-9);
        assert_true(fabs(cost.total - cases[i].total) < 1e-9 && fabs(cost.bonus - cases[i].bonus) < 1e-9);
    }
    lk_cost(lk_cost_plan("000"), &cost);
    const double lines[] = {57, 50, 6}, hourly[] = {9.00, 9.00, 9.60}, floors[] = {1.21, 1.61, 0.76};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(cost.line_subtotal[i] - lines[i]) < 1e-9 && fabs(cost.hourly_min[i] - hourly[i]) < 1e-9);
        assert_true(fabs(cost.floor[i] - floors[i]) < 0.005 && !cost.below_floor[i]);
    }
    lk_cost(lk_cost_plan("003"), &cost);
    assert_true(fabs(cost.hourly_max[0] - 7.20) < 1e-9 && fabs(cost.hourly_min[0] - 6.00) < 1e-9);
    assert_true(cost.below_floor[0]);
    struct lk_cost_plan plan = *lk_cost_plan("000");
    plan.fee_on_bonus = true;
    lk_cost(&plan, &cost);
    assert_true(fabs(cost.fee - 24.67) < 1e-9);
    assert_null(lk_cost_plan("005"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_by_every_rule),
        cmocka_unit_test(tasks_of_fifty),
        cmocka_unit_test(gold_is_never_first_never_adjacent),
        cmocka_unit_test(sides_are_even),
        cmocka_unit_test(costs_as_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
