/* Exports of survey platforms, spreadsheets and people as they come: what is read of them, what is left out and why,
 * and which columns nobody reads. */
#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/study/prompts.h"
#include "tests/common/test.h"

#define ID  "flux_20s_male_black_O-01"
#define TWO "flux_20s_male_black_O-02"

/* Every rating as "RATER PROMPT SCORES", a class as a letter from a on, an open axis as ?; then the records left out:
 * x invalid, r rejected, u unfinished, p previews; then the names not read. */
static const char *summary(const char *text, size_t n) {
    static char out[4000];
    struct lk_dataset data;
    lk_dataset_init(&data);
    struct lk_ratings_import import = {.data = &data, .gold_tolerance = 1};
    size_t at = 0;
    if (lk_ratings_read(&import, text, n, "export")) {
        snprintf(out, sizeof out, "%s", lk_error_text());
    } else {
        out[0] = 0;
        for (size_t i = 0; i < data.n_ratings; i++) {
            const struct lk_rating *r = &data.ratings[i];
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%s %s ", i ? "; " : "", data.raters[r->rater].id,
                                   lk_prompt_id(data.items[r->item].prompt));
            for (int a = 0; a < LK_N_AXES; a++)
                at += (size_t)snprintf(out + at, sizeof out - at, "%c",
                                       r->answer_class[a] >= 0      ? 'a' + r->answer_class[a]
                                       : r->score[a]                ? '0' + r->score[a]
                                       : r->open_questions >> a & 1 ? '?'
                                                                    : '.');
        }
        const size_t counts[] = {import.n_invalid, import.n_rejected, import.n_unfinished, import.n_previews};
        for (int k = 0; k < 4; k++)
            if (counts[k]) at += (size_t)snprintf(out + at, sizeof out - at, " %c%zu", "xrup"[k], counts[k]);
        for (size_t i = 0; i < import.unread.n; i++)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", i ? "," : " -", import.unread.list[i]);
    }
    if (import.rejects.n) at += (size_t)snprintf(out + at, sizeof out - at, " [%s]", import.rejects.list[0].reason);
    lk_ratings_import_free(&import);
    lk_dataset_free(&data);
    return out;
}

#define MTURK "\"HITId\",\"AssignmentId\",\"WorkerId\",\"AssignmentStatus\",\"Input.imageId\","
#define QUALTRICS_HEAD                                                                                                 \
    "StartDate,Status,Progress,Finished,ResponseId,DistributionChannel,workerId,imageId,Edit Quality\n"
#define QUALTRICS_TEXTS                                                                                                \
    "Start Date,Response Type,Progress,Finished,Response ID,Distribution Channel,workerId,imageId,\"How "              \
    "good?\nSay\"\n"
#define QUALTRICS_IDS                                                                                                  \
    "\"{\"\"ImportId\"\":\"\"startDate\"\"}\",\"{\"\"ImportId\"\":\"\"status\"\"}\",{},{},"                            \
    "\"{\"\"ImportId\"\":\"\"_recordId\"\"}\",x,x,x,\"{\"\"ImportId\"\":\"\"QID1\"\"}\"\n"
#define QUALTRICS QUALTRICS_HEAD QUALTRICS_TEXTS QUALTRICS_IDS
#define STUDIO(annotations)                                                                                            \
    "[{\"id\":1,\"data\":{\"imageId\":\"" ID "\"},\"annotations\":[" annotations "],\"meta\":{}}]"
#define RESULT(name, type, value)                                                                                      \
    "{\"value\":{\"" type "\":" value "},\"id\":\"r\",\"from_name\":\"" name "\",\"to_name\":\"i\",\"type\":\"" type   \
    "\"}"

static const struct {
    const char *text, *expected;
} cases[] = {
    /* Mechanical Turk */
    {MTURK "\"Answer.editQuality\"\n\"h\",\"a\",\"A1B2\",\"Submitted\",\"" ID "\",\"4\"\n",
     "a1b2 O-01 4.... -HITId,AssignmentId"},
    {MTURK "Answer.editQuality\nh,a,A1,Approved," ID ",4\nh,b,A2,Rejected," ID ",1\n",
     "a1 O-01 4.... r1 -HITId,AssignmentId"},
    {MTURK "Answer.editQuality\nh,a,A1,approved," ID ",4\nh,b,A2,REJECTED," ID ",1\n",
     "a1 O-01 4.... r1 -HITId,AssignmentId"},
    {MTURK "Answer.editQuality\nh,a,A1,Pending," ID ",4\n",
     " x1 [AssignmentStatus: expected Submitted, Approved or Rejected, got \"Pending\"]"},
    {MTURK "Input.prompt,Answer.raceDrift,Approve\nh,a,A1,Approved," ID ",red,2,\n",
     "a1 O-01 ..2.. -HITId,AssignmentId,Input.prompt,Approve"},
    {MTURK "Answer.editQuality.1,Answer.editQuality.4,Answer.editQuality.5\nh,a,A1,Approved," ID ",false,true,false\n",
     "a1 O-01 4.... -HITId,AssignmentId"},
    {MTURK "Answer.editQuality.1,Answer.editQuality.4\nh,a,A1,Approved," ID ",true,true\n",
     " x1 [editQuality: expected 1 to 5, or yes, partial, no, got several]"},
    {MTURK "Answer.scores.edit_success,Answer.scores.race_drift\nh,a,A1,Approved," ID ",1,0\n",
     " x1 [scores.race_drift: expected 1 to 5"},
    {MTURK "Answer.scores.edit_success,Answer.scores.race_drift\nh,a,A1,Approved," ID ",1,2\n", "a1 O-01 1.2.."},
    {MTURK "Answer.editQuality.1,Answer.editQuality.4,Answer.raceDrift\nh,a,A1,Approved," ID ",,,1\n",
     "a1 O-01 ..1.. -HITId,AssignmentId,Answer.editQuality.1,Answer.editQuality.4"},
    {MTURK "Answer.ageDrift.on-target,Answer.ageDrift.off-target\nh,a,A1,Approved," ID ",FALSE,TRUE\n",
     "a1 O-01 ....b -HITId,AssignmentId"},
    {MTURK "Answer.taskAnswers\nh,a,A1,Approved," ID
           ",\"[{\"\"editQuality\"\":{\"\"3\"\":false,\"\"4\"\":true},\"\"raceDrift\"\":\"\"2\"\"}]\"\n",
     "a1 O-01 4.2.. -HITId,AssignmentId"},
    {MTURK "Answer.taskAnswers\nh,a,A1,Approved," ID ",[{]\nh,b,A2,Approved," ID ",\"[{\"\"editQuality\"\":4}]\"\n",
     "a2 O-01 4.... x1 -HITId,AssignmentId [Answer.taskAnswers: byte 2: expected a string, got ']']"},
    {"HITId,AssignmentId,WorkerId,imageId,Input.imageId,editQuality\nh,a,A1," ID ",x,4\n",
     "a1 O-01 4.... -HITId,AssignmentId,Input.imageId"},
    {"Input.imageId,workerId\n" ID ",w\n",
     "export: line 1: expected a column \"imageId\", got: Input.imageId, workerId"},
    /* Qualtrics */
    {QUALTRICS "2026,IP Address,100,True,R_1,anonymous,w1," ID ",4\n", "w1 O-01 4.... -StartDate,Progress,ResponseId"},
    {QUALTRICS "2026,0,100,1,R_1,anonymous,w1," ID ",4\n2026,1,100,1,R_2,anonymous,w2," ID ",4\n",
     "w1 O-01 4.... p1 -StartDate,Progress,ResponseId"},
    {QUALTRICS "2026,IP Address,40,False,R_1,anonymous,w1," ID ",4\n2026,IP Address,100,True,R_1,email,w2," ID ",5\n",
     "w2 O-01 5.... u1 -StartDate,Progress,ResponseId"},
    {QUALTRICS "2026,Survey Preview,100,True,R_1,preview,w1," ID ",4\n", " p1"},
    {QUALTRICS "2026,Spam,100,True,R_1,anonymous,w1," ID ",4\n2026,8,100,1,R_1,anonymous,w1," ID ",4\n", " r2"},
    {QUALTRICS "2026,Martian,100,True,R_1,anonymous,w1," ID ",4\n", " x1 [Status: unknown: \"Martian\"]"},
    {QUALTRICS "2026,IP Address,100,perhaps,R_1,anonymous,w1," ID ",4\n",
     " x1 [Finished: expected true or false, got \"perhaps\"]"},
    {QUALTRICS_HEAD "2026,IP Address,100,True,R_1,anonymous,w1," ID ",4\n",
     "w1 O-01 4.... -StartDate,Progress,ResponseId"},
    {"Progress,Finished,ResponseId,PROLIFIC_PID,imageId,Q1,race_drift\n100,True,R_1,W1," ID ",x,1\n",
     "w1 O-01 ..1.. -Progress,ResponseId,Q1"},
    /* Label Studio */
    {"[{\"id\":1,\"imageId\":\"" ID "\",\"annotator\":3,\"editQuality\":4,\"lead_time\":1.5}]",
     "3 O-01 4.... -id,lead_time"},
    {"[{\"imageId\":\"" ID "\",\"workerId\":\"w\",\"annotator\":3,\"editQuality\":{\"choices\":[\"4\"]}}]",
     "w O-01 4.... -annotator"},
    {"[{\"imageId\":\"" ID "\",\"workerId\":\"w\",\"editQuality\":{\"choices\":[\"4\",\"5\"]}}]",
     " x1 [editQuality: expected 1 to 5, or yes, partial, no, got [\"4\",\"5\"]]"},
    {"[{\"imageId\":\"" ID "\",\"workerId\":\"w\",\"editQuality\":{\"choices\":[]}}]",
     " x1 [editQuality: expected 1 to 5, or yes, partial, no, got []]"},
    {STUDIO("{\"id\":5,\"completed_by\":7,\"result\":[" RESULT("editQuality", "rating", "4") "," RESULT(
         "raceDrift", "choices", "[\"yes\"]") "],\"was_cancelled\":false}"),
     "7 O-01 4.b.."},
    {STUDIO("{\"completed_by\":{\"id\":7,\"email\":\"Ann@lab.org\"},\"result\":[" RESULT(
         "race_drift", "number", "2") "]},{\"completed_by\":8,\"result\":[" RESULT("race_drift", "choices",
                                                                                   "[\"3\"]") "]}"),
     "ann@lab.org O-01 ..2..; 8 O-01 ..3.. -completed_by.id"},
    {STUDIO("{\"completed_by\":7,\"was_cancelled\":true,\"result\":[]},{\"completed_by\":8,\"result\":[" RESULT(
         "race_drift", "choices", "[\"3\"]") "]}"),
     "8 O-01 ..3.. u1"},
    {STUDIO(""), " u1"},
    {STUDIO("{\"completed_by\":7,\"result\":[" RESULT("race_drift", "choices", "[\"3\",\"4\"]") "]}"),
     " x1 [race_drift: expected 1 to 5, or yes, no, got [\"3\",\"4\"]]"},
    {STUDIO("{\"completed_by\":7,\"result\":[" RESULT("race_drift", "rating", "3") "," RESULT("race_drift", "rating",
                                                                                              "4") "]}"),
     " x1 [race_drift: expected 1 to 5, or yes, no, got 3]"},
    {STUDIO("{\"completed_by\":7,\"result\":[" RESULT("comment", "text", "[\"odd\"]") "," RESULT("race_drift", "rating",
                                                                                                 "3") "]}"),
     "7 O-01 ..3.."},
    /* Google Forms and spreadsheets */
    {"\"Timestamp\",\"Email Address\",\"imageId\",\"Edit quality\"\n\"2026/01/05 10:00\",\"a@b.c\",\"" ID "\",\"4\"\n",
     "a@b.c O-01 4...."},
    {"Timestamp,Email Address,workerId,imageId,Edit success,Race drift\nx,a@b.c,w1 ," ID " ,4,1\nx,a@b.c,W1," TWO
     ".png,5,2\n",
     "w1 O-01 4.1..; w1 O-02 5.2.. -Email Address"},
    {"workerId,imageId,Edit Quality,raceDrft\nw1@email.prolific.com," ID ",4,1\n", "w1 O-01 4.... -raceDrft"},
    {"workerId;imageId;editQuality\nw1;" ID ";4,0\n", "w1 O-01 4...."},
    {"sep=;\nworkerId;imageId;editQuality\n\n;;\nw1;" ID ";4\n;;\n", "w1 O-01 4...."},
    {"workerId,imageId,edit_success,race_drift\nw1," ID ",NA,2\nw2," ID ",4,N/A\nw3," ID ",-,None\n",
     "w1 O-01 ?.2..; w2 O-01 4.?..; w3 O-01 ?.?.."},
    {"{\"workerId\":\"w\",\"imageId\":\"" ID "\",\"edit_success\":4,\"race_drift\":NaN}\n", "w O-01 4.?.."},
    {"{\"workerId\":\"w\",\"imageId\":\"" ID "\",\"edit_success\":\"NULL\",\"race_drift\":\" 2 \"}\n", "w O-01 ?.2.."},
    {"{\"workerId\":\"w\",\"imageId\":\"" ID "\",\"edit_success\":Infinity}\n", " x1 [record: byte"},
    {"workerId,imageId,edit_success\n5.60E+23," ID ",4\nw2," ID ",5\n",
     "w2 O-01 5.... x1 [rater id: \"5.60E+23\" is damaged"},
    {"workerId,imageId,edit_success\n," ID ",4\nw2,,5\nw3," ID ",9\nw4," ID ",1\n",
     "w4 O-01 1.... x3 [expected a field \"workerId\"]"},
    {"workerId,imageId,edit_success\nw1,images/" ID ".PNG,4\nw1,\"c:/x/" TWO ".jpeg\",5\n",
     "w1 O-01 4....; w1 O-02 5...."},
    {"workerId,imageId,edit_success,edit success\nw1," ID ",4,4\nw2," ID ",4,5\n",
     "w1 O-01 4.... x1 [edit success: another field answers"},
    {"workerId,imageId,edit_success,Age,Gender\nw1," ID ",4,34,Female\n", "w1 O-01 4.... -Age,Gender"},
    {"\"\",\"workerId\",\"imageId\",\"edit_success\"\n\"1\",\"w1\",\"" ID "\",4\n", "w1 O-01 4...."},
    {"workerId\timageId\tEDIT-SUCCESS\nw1\t" ID "\tyes\n", "w1 O-01 c...."},
    {"workerId,imageId,ageDrift,skinToneShift\nw1," ID ",On Target,SAME\n", "w1 O-01 .b..a"},
    {"\xef\xbb\xbf[{\"workerId\":\"w\",\"imageId\":\"" ID "\",\"edit_success\":4}]", "w O-01 4...."},
    {"version https://git-lfs.github.com/spec/v1\n", "export: expected a table (CSV), got a Git LFS pointer"},
};

static void exports_as_they_come(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = summary(cases[i].text, strlen(cases[i].text)), *expected = cases[i].expected;
        if (strncmp(got, expected, strlen(expected)) != 0)
            fail_msg("%s\nexpected %s\ngot      %s", cases[i].text, expected, got);
        assert_int_equal(lk_alloc_live(), live);
    }
}

/* Who submitted: all statuses that platforms write, in the forms in which they write them. */
static void participants_of_every_platform(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected; /* + submitted, - not; then invalid */
    } people[] = {
        {"Submission id,Participant id,Status\n1,a,APPROVED\n2,b,AWAITING REVIEW\n3,c,PARTIALLY APPROVED\n",
         "+++ -Submission id"},
        {"Participant id,Status\na,RETURNED\nb,TIMED-OUT\nc,ACTIVE\nd,RESERVED\ne,SCREENED "
         "OUT\nf,REJECTED\ng,UNKNOWN\n",
         "-------"},
        {"Participant id,Status\na,Timed Out\nb,awaiting_review\nc,Approved \n", "-++"},
        {"Participant id,Status\na,APPROVED\nb,TELEPORTED\nc,APPROVED\n", "++ x1"},
        {"participant_id,submission status,Age\na,APPROVED,34\n", "+"},
        {MTURK "Answer.x\nh,a,A1,Submitted,i,1\nh,b,A2,Rejected,i,1\nh,c,A3,Approved,i,1\n",
         "+-+ -HITId,AssignmentId,Input.imageId,Answer.x"},
        {QUALTRICS "2026,IP Address,100,True,R_1,anonymous,w1,x,4\n2026,IP "
                   "Address,10,False,R_1,anonymous,w2,x,4\n2026,Survey Preview,100,True,R_1,preview,w3,x,4\n",
         "+-- -StartDate,Progress,ResponseId,imageId,Edit Quality"},
        {"workerId,submitted\na,TRUE\nb,no\nc,1\nd,0\ne,perhaps\n", "+-+- x1"},
        {"workerId,status\n5.6E+23,APPROVED\nb,APPROVED\n", "+ x1"},
        {"a,b\n1,2\n", "export: line 1: expected a column \"participant id\", got: a, b"},
    };
    for (size_t i = 0; i < sizeof people / sizeof *people; i++) {
        struct lk_dataset data;
        lk_dataset_init(&data);
        struct lk_ratings_import import = {.data = &data};
        char got[1000] = "";
        size_t at = 0;
        enum lk_code rc = lk_ratings_participants(&import, people[i].text, strlen(people[i].text), "export", NULL);
        if (rc) snprintf(got, sizeof got, "%s", lk_error_text());
        for (size_t r = 0; r < data.n_raters; r++) got[at++] = data.raters[r].submitted ? '+' : '-';
        if (import.n_listed_invalid)
            at += (size_t)snprintf(got + at, sizeof got - at, " x%zu", import.n_listed_invalid);
        for (size_t k = 0; k < import.unread.n; k++)
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", k ? "," : " -", import.unread.list[k]);
        if (strcmp(got, people[i].expected))
            fail_msg("%s\nexpected %s\ngot      %s", people[i].text, people[i].expected, got);
        lk_ratings_import_free(&import);
        lk_dataset_free(&data);
    }
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {
        MTURK "Answer.taskAnswers,Answer.q.1,Answer.q.2\nh,a,A1,Approved," ID
              ",\"[{\"\"editQuality\"\":{\"\"4\"\":true}}]\",true,false\n",
        STUDIO("{\"completed_by\":{\"id\":7},\"result\":[" RESULT("race_drift", "choices", "[\"3\"]") "]}"),
        "[{\"imageId\":\"" ID "\",\"workerId\":\"w\",\"editQuality\":{\"choices\":[\"4\"]}}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enum lk_code rc = LK_E_NOMEM;
        for (int64_t n = 1; rc; n++) {
            struct lk_dataset data;
            int64_t live = lk_alloc_live();
            lk_dataset_init(&data);
            struct lk_ratings_import import = {.data = &data};
            lk_alloc_fail_at(n);
            rc = lk_ratings_read(&import, texts[i], strlen(texts[i]), "export");
            lk_alloc_fail_at(0);
            assert_true(!rc || rc == LK_E_NOMEM);
            if (import.n_invalid) fail_msg("%s: allocation %lld: %s", texts[i], (long long)n, lk_error_text());
            lk_ratings_import_free(&import);
            lk_dataset_free(&data);
            assert_int_equal(lk_alloc_live(), live);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_as_they_come),
        cmocka_unit_test(participants_of_every_platform),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
