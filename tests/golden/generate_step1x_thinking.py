"""Replies of a language model and what Step1X-Edit's authors make of them, by running their own functions.

    python tests/golden/generate_step1x_thinking.py --fork DIFFUSERS_FORK/src

writes data/step1x_thinking.json. FORK is the tree of the diffusers fork, branch step1xedit_v1p2. With --prompts FILE it
writes instead the instructions of thinking and reflection, which this repository does not have, as models/step1x/
instructions.h wants them: FILE is then what `prompts_file` of a request may name.
"""

import argparse
import ast
import importlib.util
import json
import sys
import types
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
FOLDER = "diffusers/pipelines/step1x_edit"
CHINESE, ENGLISH = "把背景换成雪山", "make it snow"


def load_thinker(fork):
    for name in ("megfile", "qwen_vl_utils"):
        sys.modules.setdefault(name, types.SimpleNamespace(process_vision_info=None, smart_open=None))
    path = Path(fork) / FOLDER / "pipeline_step1x_edit_thinker.py"
    spec = importlib.util.spec_from_file_location("thinker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_if(fork, test):
    """The `if` statement of the pipeline's __call__ whose condition reads `test`, compiled without its `else`."""
    source = (Path(fork) / FOLDER / "pipeline_step1x_edit_v1p2.py").read_text()
    found = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and ast.unparse(node.test) == test
    ]
    found[-1].orelse = []
    return compile(ast.Module(body=[found[-1]], type_ignores=[]), "pipeline", "exec")


def json_replies():
    def reply(**values):
        return json.dumps(values, ensure_ascii=False)

    yield from (
        reply(meets_instruction="yes", major_conflicts=0, minor_conflicts=0, omissions=0, raw_score=9.7, reason=" fine "),
        reply(meets_instruction="Yes ", raw_score=1.0),
        reply(meets_instruction="yes", raw_score=1.00000005),
        reply(meets_instruction="yes", raw_score=1.001),
        reply(meets_instruction="yes", raw_score=0.83456),
        reply(meets_instruction="yes", raw_score=8.123456),
        reply(meets_instruction="yes", raw_score=12),
        reply(meets_instruction="yes", raw_score=-3),
        reply(meets_instruction="yes", raw_score=-0.0),
        reply(meets_instruction="no", raw_score=9),
        reply(meets_instruction="NO", raw_score=1.5),
        reply(meets_instruction="partial", raw_score=9),
        reply(meets_instruction=" Partial\u3000", raw_score=4.5),
        reply(meets_instruction="mostly", raw_score=9.5),
        reply(raw_score=9.5),
        reply(meets_instruction=True, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=1, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=2, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=1.9, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts="2", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=" +1_0 ", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts="1.5", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts="none", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=" ", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts="", raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=None, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=True, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=False, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=[], raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=[1], raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts={}, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts={"a": 1}, raw_score=9.5),
        reply(meets_instruction="yes", major_conflicts=-4, raw_score=9.5),
        reply(meets_instruction="yes", minor_conflicts=7, raw_score=9.5),
        reply(meets_instruction="yes", minor_conflicts="a few", raw_score=9.5),
        reply(meets_instruction="yes", omissions=1, raw_score=9.5),
        reply(meets_instruction="yes", hallucinations=3, raw_score=9.5),
        reply(meets_instruction="yes", hallucinations=-1, raw_score=9.5),
        reply(meets_instruction="partial", omissions=2, major_conflicts=1, raw_score=6.25),
        reply(meets_instruction="yes", raw_score="7.5"),
        reply(meets_instruction="yes", raw_score=" 1_0.0 "),
        reply(meets_instruction="yes", raw_score="7/10"),
        reply(meets_instruction="yes", raw_score="inf"),
        reply(meets_instruction="yes", raw_score="nan"),
        reply(meets_instruction="yes", raw_score="0x8"),
        reply(meets_instruction="yes", raw_score=""),
        reply(meets_instruction="yes", raw_score=None),
        reply(meets_instruction="yes", raw_score=True),
        reply(meets_instruction="yes", raw_score=[8]),
        reply(meets_instruction="yes"),
        reply(meets_instruction="yes", raw_score=7, reason=None),
        reply(meets_instruction="yes", raw_score=7, reason=True),
        reply(meets_instruction="yes", raw_score=7, reason=12),
        reply(meets_instruction="yes", raw_score=7, reason="\u2003满足指令。\n"),
        "{}",
        "",
        "no object",
        "} {",
        "{",
        "{'raw_score': 7}",
        '{"raw_score": 7,}',
        '{"raw_score": 07}',
        '{"raw_score": 7.}',
        '{"raw_score": .7}',
        '{"raw_score": 1e999, "meets_instruction": "yes"}',
        '{"major_conflicts": 1e999}',
        '{"raw_score": 7} and {"raw_score": 8}',
        '{"reason": "a\nb", "raw_score": 7}',
        'Sure! ```json\n{"raw_score": 7, "meets_instruction": "yes"}\n``` Done.',
        '{"raw_score": 7, "nested": {"a": [1, {"b": null}]}} trailing',
        '错误: {"raw_score": 7}',
        ' 错误: {"raw_score": 7}',
        '[{"raw_score": 7, "meets_instruction": "yes"}]',
    )


REFLECTIONS = [
    "<#Think> fine.<#Success>",
    "<#Think> fine.\n<#Success>\n",
    "  before <#Think> fine.<#Success> after \u3000",
    "<#Think> no.<#Reflection> Make the sky blue. ",
    "<#Think> no.<#Reflection>",
    "<#Think> no.<#Reflection>\n\nMake it \"A\".\n",
    "<#Think> no.<#Failed>",
    "<#Think> odd.<#Others>",
    "<#Success>",
    "<#Success><#Think> fine.",
    "<#Think> a <#Success> b <#Success>",
    "<#Think> a <#Success> b <#Failed>",
    "<#Think> a <#Reflection> x <#Reflection> y",
    "<#Think> a <#Think> b <#Success>",
    "<#Think> a <#Reflection> b <#Think> c",
    "<#Failed> <#Think> <#Failed>",
    "<#Think>",
    "",
    "<#think> a <#Success>",
    "Error <#Think> a <#Others> <#Others>",
    "<#Think> 好。<#Reflection>把天空变成蓝色。",
    "错误: <#Think> a <#Success>",
]

SCORES = [
    '{"score": [8, 9], "reasoning": "good"}',
    ' {"score": [8.5, 7.25, 9], "reasoning": ""} ',
    '```json\n{"score": [3, 4], "reasoning": "x"}\n```',
    '```\n{"score": [3, 4], "reasoning": "x"}\n```',
    '```json{"score": [3, 4], "reasoning": "x"}``` ',
    '```json\n{"score": [3, 4], "reasoning": "x"}',
    '```json\n{"score": [3, 4], "reasoning": "x"}   ',
    '```json\n{"score": [3, 4], "reasoning": "x"}。。。',
    '```JSON\n{"score": [3, 4], "reasoning": "x"}\n```',
    "```json",
    "```",
    "``",
    '{"score": [1], "reasoning": null}',
    '{"score": 5, "reasoning": "x"}',
    '{"score": "[5]", "reasoning": "x"}',
    '{"score": [5, 6]}',
    '{"reasoning": "x"}',
    '{"score": [true, 6], "reasoning": "x"}',
    '{"score": [-2, 6], "reasoning": "x"}',
    '[{"score": [5], "reasoning": "x"}]',
    '["score", "reasoning"]',
    '"score reasoning"',
    '{"score": [5, 6], "reasoning": "x"} more',
    'text {"score": [5, 6], "reasoning": "x"}',
    '{"score": [5, 6], "reasoning": "a\nb"}',
    "",
    "7",
]

PROMPTS = ["", "make it snow", "把", "把背", "add 雪 to the scene", "add 雪 to the 山", "ＡＢＣ", "カタカナ", "𠀀𠀁", "鿿一"]

S, R, F, O, X = "<#Think> a <#Success>", "<#Think> a <#Reflection> again", "<#Think> a <#Failed>", "<#Think> a <#Others>", "?"
COURSES = [[S], [R, S], [R, R, R], [F, S], [R, F, S], [F, R, S], [O], [X, R, O], [F, F, F], [R, X, R, S]]

BEST = [
    [(5, 5, F)],
    [(5, 5, F), (6, 5, F)],
    [(6, 5, F), (5, 5, F)],
    [(5, 6, F), (6, 5, F)],
    [(5, 5, S), (5, 5, F)],
    [(5, 5, F), (5, 5, S), (5, 5, F)],
    [(5, 5, F), (5, 5, S), (5, 5, S)],
    [(0, 0, F), (0, 0, F)],
    [(0, 0, S), (0, 0, F), (0, 0, F)],
    [(5, 5, R), (5, 5, O), (4, 9, F)],
    [(-1, 1, F), (-2, 1, S)],
    [(-2, 1, F), (-1, 1, S)],
    [(9, 9, F), (9, 9, O), (3, 3, S)],
    [(5, 5, S), (6, 6, F), (6, 6, S), (6, 6, F)],
]


SIDES = [1, 28, 640, 1024, 1025, 1026, 1027, 1333, 1500, 1999, 2047, 2048, 3000, 3001, 5000, 9999]


def thumbnails():
    """Sides before and after; white pictures, since only the sides are of interest."""
    out = []
    for width in SIDES:
        for height in SIDES:
            image = Image.new("1", (width, height))
            if max(image.size) > 1024:
                image.thumbnail((1024, 1024))
            out.append([width, height, *image.size])
    return out


def consistency(judge, reply):
    if reply.startswith("错误:"):  # as evaluate_consistency does
        return dict(valid=False)
    found = judge._parse_json_block(reply)
    result = None if found is None else judge._apply_score_caps_and_finalize(found)
    if result is None:
        return dict(valid=False)
    return dict(valid=True, score=result["score"], printed=str(result["score"]), reason=result["reason"])


def reflection(thinker, judge, reply):
    valid, words = judge._validate_reflection_response(reply)
    out = dict(valid=valid)
    if valid:
        success, prompt = thinker.format_text(words)
        out.update(words=words, success=success, next=prompt)
    return out


def scores(judge, reply):
    valid, content = judge._validate_score1_response(reply)
    return dict(valid=valid, least=min(content["score"])) if valid else dict(valid=False)


def course(step, thinker, replies):
    """The prompts and sources of the rounds that the pipeline's loop would make of these reflections."""
    rounds = []
    state = dict(enable_reflection_mode=True, original_ref_image="source", original_prompt="p", reformat_prompt="p")
    state.update(prompt="p", source="source", success=False, try_cnt=0, out_images=[], out_think_info=[], best_think_info=[])
    for i, reply in enumerate(replies):
        if state["success"]:
            break
        rounds.append(dict(prompt=state["prompt"], from_source=state["source"] == "source"))
        state["image"] = [f"round {i}"]
        state["thinker"] = types.SimpleNamespace(reflect=lambda *_: (reply, None), format_text=thinker.format_text)
        exec(step, state)
        state["source"] = state["image"]
    return rounds


def best(choose, rounds):
    state = dict(
        best_think_info=[dict(score1=dict(score=[a, 10]), score2=dict(score=[10, b])) for a, b, _ in rounds],
        out_images=list(range(len(rounds))),
        out_think_info=[words for *_, words in rounds],
    )
    exec(choose, state)
    return dict(rounds=[dict(score=a * b, words=words) for a, b, words in rounds], best=state["final_images"][0])


def table(fork):
    module = load_thinker(fork)
    judge = module.ImageEditEvaluator_EN.__new__(module.ImageEditEvaluator_EN)
    thinker = module.Step1XEditThinker.__new__(module.Step1XEditThinker)
    step = find_if(fork, "enable_reflection_mode")
    choose = find_if(fork, "best_think_info and len(best_think_info) > 0 and (len(out_images) > 0)")
    return dict(
        language=[dict(prompt=p, language=module.analyze_text(p)) for p in PROMPTS],
        consistency=[dict(reply=r, **consistency(judge, r)) for r in json_replies()],
        reflection=[dict(reply=r, **reflection(thinker, judge, r)) for r in REFLECTIONS],
        scores=[dict(reply=r, **scores(judge, r)) for r in SCORES],
        courses=[dict(replies=c, rounds=course(step, thinker, c)) for c in COURSES],
        best=[best(choose, rounds) for rounds in BEST],
        thumbnails=thumbnails(),
    )


def instructions(fork):
    """Each text with its values put back to placeholders: rendered with values that stand nowhere else."""
    module = load_thinker(fork)
    judge = module.ImageEditEvaluator_EN.__new__(module.ImageEditEvaluator_EN)
    marks = {name: f"\x01{name}\x01" for name in ("instruction", "language", "description", "score", "reason")}
    module.analyze_text = lambda _: marks["language"]
    given = marks["instruction"]
    calls = dict(
        rewrite=judge.build_reformt_prompt("", given),
        describe=judge.build_descriptions_messages("", given),
        score=judge._build_scoring_messages("", description=marks["description"], instruction=given),
        reflect=judge._build_reflection_messages("", "", given, marks["score"], marks["reason"]),
        score1=judge._build_score1_messages("", "", given),
        score2=judge._build_score2_messages("", given),
    )
    out = {}
    for name, messages in calls.items():
        system, user = messages
        text = next(part["text"] for part in user["content"] if part["type"] == "text")
        for role, content in (("system", system["content"]), ("user", text)):
            for mark, value in marks.items():
                content = content.replace(value, "{" + mark + "}")
            out[f"{name}_{role}"] = content
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fork", required=True)
    parser.add_argument("--prompts")
    arguments = parser.parse_args()
    path = Path(arguments.prompts) if arguments.prompts else HERE / "data" / "step1x_thinking.json"
    content = instructions(arguments.fork) if arguments.prompts else table(arguments.fork)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1 if arguments.prompts else None) + "\n")


if __name__ == "__main__":
    main()
