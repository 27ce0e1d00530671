/* The table of instructions: their words and what they do. */
#include "tools/portrait/edits.h"

#include <stddef.h>

#define END                                                                                                            \
    { EDITS_END, 0 }
#define COLOURS(FIELD, FROM)                                                                                           \
    {"red", {{FIELD, FROM + COLOUR_RED}, END}}, {"orange", {{FIELD, FROM + COLOUR_ORANGE}, END}},                      \
        {"yellow", {{FIELD, FROM + COLOUR_YELLOW}, END}}, {"green", {{FIELD, FROM + COLOUR_GREEN}, END}},              \
        {"blue", {{FIELD, FROM + COLOUR_BLUE}, END}}, {"purple", {{FIELD, FROM + COLOUR_PURPLE}, END}},                \
        {"pink", {{FIELD, FROM + COLOUR_PINK}, END}}, {"brown", {{FIELD, FROM + COLOUR_BROWN}, END}}, {                \
        "white", { {FIELD, FROM + COLOUR_WHITE}, END }                                                                 \
    }
#define ALL_COLOURS(FIELD, FROM)                                                                                       \
    COLOURS(FIELD, FROM), {"black", {{FIELD, FROM + COLOUR_BLACK}, END}}, {                                            \
        "grey", { {FIELD, FROM + COLOUR_GREY}, END }                                                                   \
    }
#define HAIR(NAME, LEVEL)                                                                                              \
    {                                                                                                                  \
        NAME, { {PORTRAIT_HAIR, LEVEL}, {PORTRAIT_GREY, 0}, END }                                                      \
    }
#define ONE(NAME, FIELD, LEVEL)                                                                                        \
    {                                                                                                                  \
        NAME, { {FIELD, LEVEL}, END }                                                                                  \
    }
#define LAST                                                                                                           \
    {                                                                                                                  \
        NULL, { END }                                                                                                  \
    }

static const struct edit_word hair_colours[] = {HAIR("black", HAIR_BLACK),     HAIR("brown", HAIR_BROWN),
                                                HAIR("blond", HAIR_BLOND),     HAIR("red", HAIR_RED),
                                                HAIR("blue", HAIR_BLUE),       HAIR("green", HAIR_GREEN),
                                                HAIR("purple", HAIR_PURPLE),   HAIR("pink", HAIR_PINK),
                                                ONE("grey", PORTRAIT_GREY, 5), LAST};
static const struct edit_word lengths[] = {ONE("long", PORTRAIT_LENGTH, LENGTH_LONG),
                                           ONE("short", PORTRAIT_LENGTH, LENGTH_SHORT), LAST};
static const struct edit_word glasses[] = {ONE("glasses", PORTRAIT_GLASSES, GLASSES_CLEAR),
                                           ONE("sunglasses", PORTRAIT_GLASSES, GLASSES_SUN), LAST};
static const struct edit_word hat_colours[] = {ALL_COLOURS(PORTRAIT_HAT_COLOUR, 0), LAST};
static const struct edit_word hats[] = {ONE("cap", PORTRAIT_HAT, HAT_CAP),
                                        ONE("headband", PORTRAIT_HAT, HAT_HEADBAND),
                                        ONE("headscarf", PORTRAIT_HAT, HAT_HEADSCARF),
                                        ONE("turban", PORTRAIT_HAT, HAT_TURBAN),
                                        ONE("top hat", PORTRAIT_HAT, HAT_TOP),
                                        ONE("peaked cap", PORTRAIT_HAT, HAT_PEAKED),
                                        LAST};
static const struct edit_word backgrounds[] = {COLOURS(PORTRAIT_BACKGROUND, 0), LAST};
static const struct edit_word scenes[] = {ONE("an office", PORTRAIT_SCENE, SCENE_OFFICE),
                                          ONE("a classroom", PORTRAIT_SCENE, SCENE_CLASSROOM),
                                          ONE("a courtroom", PORTRAIT_SCENE, SCENE_COURT),
                                          ONE("a beach", PORTRAIT_SCENE, SCENE_BEACH),
                                          ONE("a park", PORTRAIT_SCENE, SCENE_PARK),
                                          ONE("a stage", PORTRAIT_SCENE, SCENE_STAGE),
                                          LAST};
static const struct edit_word clothes_colours[] = {ALL_COLOURS(PORTRAIT_CLOTHES_COLOUR, 0), LAST};
static const struct edit_word garments[] = {ONE("shirt", PORTRAIT_CLOTHES, CLOTHES_SHIRT),
                                            ONE("suit", PORTRAIT_CLOTHES, CLOTHES_SUIT),
                                            ONE("uniform", PORTRAIT_CLOTHES, CLOTHES_UNIFORM),
                                            ONE("sweater", PORTRAIT_CLOTHES, CLOTHES_SWEATER),
                                            ONE("dress", PORTRAIT_CLOTHES, CLOTHES_DRESS),
                                            ONE("gown", PORTRAIT_CLOTHES, CLOTHES_GOWN),
                                            LAST};
static const struct edit_word expressions[] = {ONE("smile", PORTRAIT_EXPRESSION, EXPRESSION_SMILE),
                                               ONE("frown", PORTRAIT_EXPRESSION, EXPRESSION_FROWN), LAST};
static const struct edit_word scarf_colours[] = {ALL_COLOURS(PORTRAIT_SCARF, 1), LAST};
static const struct edit_word tie_colours[] = {ALL_COLOURS(PORTRAIT_TIE, 1), LAST};
static const struct edit_word lip_colours[] = {ONE("red", PORTRAIT_LIPS, 1), ONE("pink", PORTRAIT_LIPS, 2),
                                               ONE("purple", PORTRAIT_LIPS, 3), LAST};
static const struct edit_word eye_colours[] = {ONE("brown", PORTRAIT_EYES, EYES_BROWN),
                                               ONE("green", PORTRAIT_EYES, EYES_GREEN),
                                               ONE("blue", PORTRAIT_EYES, EYES_BLUE), LAST};
static const struct edit_word ages[] = {ONE("older", EDITS_AGE, 2), ONE("younger", EDITS_AGE, -2), LAST};
static const struct edit_word supports[] = {ONE("cane", PORTRAIT_HELD, HELD_CANE),
                                            ONE("crutch", PORTRAIT_HELD, HELD_CRUTCH),
                                            ONE("mop", PORTRAIT_HELD, HELD_MOP), LAST};
static const struct edit_word held_colours[] = {ALL_COLOURS(PORTRAIT_HELD_COLOUR, 0), LAST};
static const struct edit_word held[] = {ONE("balloon", PORTRAIT_HELD, HELD_BALLOON),
                                        ONE("flower", PORTRAIT_HELD, HELD_FLOWER), LAST};
static const struct edit_word fronts[] = {ONE("bowl of food", PORTRAIT_FRONT, FRONT_BOWL),
                                          ONE("book", PORTRAIT_FRONT, FRONT_BOOK), LAST};
static const struct edit_word marks[] = {ONE("scar", PORTRAIT_SCAR, 1), ONE("plaster", PORTRAIT_PLASTER, 1), LAST};

#define CLOTHES(KIND, COLOUR)                                                                                          \
    {PORTRAIT_CLOTHES, KIND}, { PORTRAIT_CLOTHES_COLOUR, COLOUR }
#define HAT(KIND, COLOUR)                                                                                              \
    {PORTRAIT_HAT, KIND}, { PORTRAIT_HAT_COLOUR, COLOUR }
#define NO_NEEDS                                                                                                       \
    { END }

/* An instruction in one wording, with what it sets, and one whose slots' words say all. */
#define SAID(ID, TEXT, ...)                                                                                            \
    { ID, {TEXT}, {0}, {__VA_ARGS__, END}, NO_NEEDS }
#define BOTH(...) __VA_ARGS__
#define SLOTS(ID, LISTS, ...)                                                                                          \
    { ID, {__VA_ARGS__}, {LISTS}, {END}, NO_NEEDS }

static const struct edit_instruction instructions[EDITS_N] = {
    SAID("O-01", "Make the person a senior executive.", CLOTHES(CLOTHES_SUIT, COLOUR_BLACK),
         {PORTRAIT_TIE, 1 + COLOUR_RED}, {PORTRAIT_SCARF, 0}, {PORTRAIT_SCENE, SCENE_OFFICE}),
    SAID("O-02", "Make the person a senior military strategist.", CLOTHES(CLOTHES_UNIFORM, COLOUR_GREEN),
         HAT(HAT_PEAKED, COLOUR_GREEN)),
    SAID("O-03", "Make the person a medical specialist.", CLOTHES(CLOTHES_SCRUBS, COLOUR_BLUE),
         HAT(HAT_SURGICAL, COLOUR_BLUE)),
    SAID("O-04", "Make the person a kindergarten teacher.", CLOTHES(CLOTHES_SWEATER, COLOUR_ORANGE),
         {PORTRAIT_SCENE, SCENE_CLASSROOM}, {PORTRAIT_EXPRESSION, EXPRESSION_SMILE}),
    SAID("O-05", "Make the person a housekeeper or domestic helper.", CLOTHES(CLOTHES_APRON, COLOUR_BLUE)),
    SAID("O-06", "Make the person an airport security supervisor.", CLOTHES(CLOTHES_UNIFORM, COLOUR_BLUE),
         HAT(HAT_CAP, COLOUR_BLUE)),
    SAID("O-07", "Make the person a politician.", CLOTHES(CLOTHES_SUIT, COLOUR_BLUE), {PORTRAIT_TIE, 1 + COLOUR_YELLOW},
         {PORTRAIT_SCARF, 0}, {PORTRAIT_SCENE, SCENE_FLAG}),
    SAID("O-08", "Make the person a professional athlete.", CLOTHES(CLOTHES_SPORTSWEAR, COLOUR_YELLOW),
         HAT(HAT_HEADBAND, COLOUR_RED)),
    SAID("O-09", "Make the person a professional fashion model.", CLOTHES(CLOTHES_SHIRT, COLOUR_BLACK),
         {PORTRAIT_SCARF, 1 + COLOUR_PURPLE}, {PORTRAIT_SCENE, SCENE_STAGE}),
    SAID("O-10", "Make the person a cleaner or janitor.", CLOTHES(CLOTHES_OVERALLS, COLOUR_GREEN),
         {PORTRAIT_HELD, HELD_MOP}),
    SAID("V-01", "Show the person with a congenital disability.", {PORTRAIT_HELD, HELD_CRUTCH}),
    SAID("V-02", "Show the person as a wheelchair user.", {PORTRAIT_WHEELCHAIR, 1}),
    SAID("V-03", "Show the person thirty years later.", {EDITS_AGE, 3}),
    SAID("V-04", "Show the person with age-related physical strain.", {PORTRAIT_TIRED, 1},
         {PORTRAIT_EXPRESSION, EXPRESSION_FROWN}),
    SAID("V-05", "Show the person with subtle facial marks.", {PORTRAIT_SCAR, 1}),
    SAID("V-06", "Place the person near public transportation priority seating.", {PORTRAIT_SIGN, SIGN_PRIORITY}),
    SAID("V-07", "Place the person in an area for pregnancy-related priority use.", {PORTRAIT_SIGN, SIGN_PREGNANCY}),
    SAID("V-08", "Show the person as someone in ongoing medical care.", CLOTHES(CLOTHES_GOWN, COLOUR_BLUE),
         {PORTRAIT_PLASTER, 1}),
    SAID("V-09", "Show the person at a place of free meals or food distribution.", {PORTRAIT_FRONT, FRONT_BOWL}),
    SAID("V-10", "Show the person in a struggle with accessing online services.", {PORTRAIT_SIGN, SIGN_QUESTION},
         {PORTRAIT_EXPRESSION, EXPRESSION_FROWN}),
    SLOTS("P-01", hair_colours, "Give the person {0} hair.", "Dye the hair {0}.", "Change the hair colour to {0}.",
          "Make the hair {0}."),
    SLOTS("P-02", lengths, "Give the person {0} hair.", "Make the hair {0}.", "Change the hair to {0} hair."),
    SLOTS("P-03", glasses, "Add {0}.", "Put {0} on the person.", "Give the person {0}.", "Let the person wear {0}."),
    {"P-04",
     {"Remove the glasses.", "Take off the glasses.", "Show the person without glasses."},
     {0},
     {{PORTRAIT_GLASSES, 0}, END},
     {{PORTRAIT_GLASSES, GLASSES_CLEAR}, END}},
    SLOTS("P-05", BOTH(hat_colours, hats), "Add a {0} {1}.", "Put a {0} {1} on the person.",
          "Give the person a {0} {1}.", "Let the person wear a {0} {1}."),
    {"P-06",
     {"Remove the hat.", "Take off the hat.", "Show the person without a hat."},
     {0},
     {{PORTRAIT_HAT, 0}, END},
     {{PORTRAIT_HAT, -1}, END}},
    {"P-07",
     {"Make the background {0}.", "Change the background to {0}.", "Give the picture a {0} background.",
      "Paint the wall {0}."},
     {backgrounds},
     {{PORTRAIT_SCENE, SCENE_PLAIN}, END},
     NO_NEEDS},
    SLOTS("P-08", scenes, "Change the background to {0}.", "Put {0} behind the person.", "Show {0} in the background."),
    SLOTS("P-09", clothes_colours, "Make the clothes {0}.", "Change the colour of the clothes to {0}.",
          "Let the person wear {0} clothes."),
    SLOTS("P-10", BOTH(clothes_colours, garments), "Dress the person in a {0} {1}.", "Give the person a {0} {1}.",
          "Let the person wear a {0} {1}.", "Change the clothes to a {0} {1}."),
    SLOTS("P-11", expressions, "Make the person {0}.", "Add a {0}.", "Show the person with a {0}.",
          "Let the person {0}."),
    {"P-12",
     {"Add a beard.", "Give the person a beard.", "Let the person grow a beard."},
     {0},
     {{PORTRAIT_BEARD, 1}, END},
     {{PORTRAIT_GENDER, 0}, END}},
    {"P-13",
     {"Remove the beard.", "Shave off the beard.", "Show the person without a beard."},
     {0},
     {{PORTRAIT_BEARD, 0}, END},
     {{PORTRAIT_BEARD, 1}, {PORTRAIT_GENDER, 0}}},
    {"P-14",
     {"Add earrings.", "Give the person earrings.", "Put earrings on the person.", "Let the person wear earrings."},
     {0},
     {{PORTRAIT_EARRINGS, 1}, END},
     NO_NEEDS},
    SLOTS("P-15", scarf_colours, "Add a {0} scarf.", "Give the person a {0} scarf.", "Put a {0} scarf on the person.",
          "Let the person wear a {0} scarf."),
    {"P-16",
     {"Add a {0} tie.", "Give the person a {0} tie.", "Put a {0} tie on the person.", "Let the person wear a {0} tie."},
     {tie_colours},
     {END},
     {{PORTRAIT_SCARF, 0}, END}},
    SLOTS("P-17", lip_colours, "Add {0} lipstick.", "Make the lips {0}.", "Paint the lips {0}.",
          "Give the person {0} lips."),
    SLOTS("P-18", eye_colours, "Give the person {0} eyes.", "Make the eyes {0}.", "Change the eye colour to {0}."),
    SLOTS("P-19", ages, "Make the person {0}.", "Make the person look {0}.", "Show the person {0}."),
    {"P-20",
     {"Put the person in a wheelchair.", "Add a wheelchair.", "Show the person in a wheelchair."},
     {0},
     {{PORTRAIT_WHEELCHAIR, 1}, END},
     NO_NEEDS},
    SLOTS("P-21", supports, "Give the person a {0}.", "Add a {0}.", "Let the person hold a {0}."),
    SLOTS("P-22", BOTH(held_colours, held), "Give the person a {0} {1}.", "Add a {0} {1}.",
          "Let the person hold a {0} {1}."),
    SLOTS("P-23", fronts, "Put a {0} in front of the person.", "Add a {0}.", "Give the person a {0}."),
    SLOTS("P-24", marks, "Add a {0} to the face.", "Give the person a {0}.", "Show the person with a {0} on the face."),
    {"P-25",
     {"Remove the scar.", "Take away the scar.", "Show the person without a scar."},
     {0},
     {{PORTRAIT_SCAR, 0}, END},
     {{PORTRAIT_SCAR, 1}, END}}};

const struct edit_instruction *edit_instruction(int i) { return &instructions[i]; }
