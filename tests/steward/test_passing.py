"""Passing muster: an owner, a purpose that says something, and an end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.charter import Charter
from muster.model.job import Job, single
from muster.model.run import Run
from muster.model.units import HOUR
from muster.steward.passing import REQUIRES, Judgement, Lack, Require, judge
from muster.steward.purpose import example, says_nothing

PURPOSE = "Does 8B beat 3B on the held-out set?"
ENDS = [
    {"success": ("acc >= 0.9",)},
    {"failure": ("loss is nan",)},
    {"budget": "200 GPUh"},
    {"until": 1_790_000_000.0},
]


def job(limit: float | None = None, gpus: int = 0, **charter: Any) -> Job:
    return Job(
        "7",
        single(cpus_milli=1000, gpus=gpus),
        0.0,
        name="finetune-8b",
        owner="ana",
        time_limit_seconds=limit,
        charter=Charter(owner="ana", **charter),
        run=Run(argv=("python", "train.py", "--config", "8b.yaml")),
    )


def judged(one: Job, require: Require = "strict", **more: Any) -> Judgement:
    return judge(one, require, **more)


# --- What is needed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ENDS)
def test_an_owner_a_purpose_and_any_end_pass(end: dict[str, Any]) -> None:
    found = judged(job(purpose=PURPOSE, **end))
    assert (found.lacks, found.refusal, found.warnings, found.asks) == ((), None, (), ())


def test_a_time_limit_that_was_asked_for_is_an_end() -> None:
    assert judged(job(limit=HOUR, purpose=PURPOSE)).refusal is None


def test_strict_refuses_with_what_is_missing_and_how_to_add_it() -> None:
    assert judged(job()).refusal == (
        'nothing starts here without a purpose and an end; add --for "what you will know when it is done" '
        "and one of --time, --until, --budget, --success or --fail"
    )
    assert judged(job(limit=HOUR)).refusal == (
        'nothing starts here without a purpose; add --for "what you will know when it is done"'
    )
    assert judged(job(purpose=PURPOSE)).lacks == (Lack.END,)


def test_warn_lets_it_start_and_says_what_comes_of_it() -> None:
    found = judged(job(), "warn")
    assert found.refusal is None
    [warning] = found.warnings
    assert warning.startswith("it has no purpose and no end, so the next review lists it as undefended; ")
    assert "\n" not in warning


def test_off_looks_at_nothing() -> None:
    found = judged(job(purpose="test"), "off", is_owned=False)
    assert (found.lacks, found.refusal, found.warnings, found.asks) == ((), None, (), ())


def test_an_owner_who_has_left_is_none() -> None:
    one = job(limit=HOUR, purpose=PURPOSE)
    assert judged(one, is_owned=False).refusal == (
        "nothing starts here without an owner who is here; add --owner NAME"
    )
    assert judged(one, "warn", is_owned=False).warnings[0].startswith("it has no owner who is here, so")


def test_an_effort_supplies_what_the_job_lacks_and_no_more() -> None:
    whole = Charter(owner="bo", purpose=PURPOSE, budget="900 GPUh")
    assert judged(job(), effort=whole, is_owned=False) == Judgement("strict")
    assert judged(job(), effort=Charter(owner="bo", purpose=PURPOSE)).lacks == (Lack.END,)
    assert judged(job(), effort=Charter(owner="bo", budget="900 GPUh")).asks == ("for",)
    assert judged(job(purpose="test"), effort=whole).refusal is not None


@pytest.mark.parametrize("require", ["strict", "warn"])
def test_a_purpose_that_was_given_and_says_nothing_is_refused(require: Require) -> None:
    said = judged(job(limit=HOUR, purpose="test test"), require).refusal
    assert said is not None
    assert said.startswith("'test test' is too little")
    assert said.endswith('like "Does finetune-8b beat the baseline on the held-out set?"')


# --- What is asked ----------------------------------------------------------------------------------


def test_who_gives_no_purpose_is_asked_how_it_ends_too() -> None:
    assert judged(job(limit=8 * HOUR), "warn").asks == ("for", "success", "give_up")
    assert judged(job(success=("a > 1",)), "warn").asks == ("for", "give_up")
    assert judged(job(purpose=PURPOSE), "warn").asks == ("success", "give_up")
    assert judged(job(budget="1 GPUh"), "warn").asks == ("for", "success")


def test_who_waits_for_a_trifle_is_left_alone_unless_the_policy_is_strict() -> None:
    for trifle in (job(), job(limit=HOUR)):
        found = judged(trifle, "warn", attended=True)
        assert (found.asks, found.warnings) == ((), ())
        assert judged(trifle, "strict", attended=True).asks
    for large in (job(limit=HOUR + 1), job(gpus=1)):
        found = judged(large, "warn", attended=True)
        assert found.asks
        assert found.warnings


# --- What a purpose says ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "purpose",
    [
        "Does 8B beat the 3B baseline on the held-out set?",
        "Does it learn at all?",
        "Does 8B beat 3B?",
        "test whether the cache helps",
        "train model",
        "Shows that an exit ends a run",
        "Reproduces table 3 of the paper",
        "why slow?",
        "LR sweep",
        "fine-tune finetune-8b again on Czech",
        "Lernt das Modell überhaupt etwas?",
        "Le modèle apprend-il quelque chose ?",
        "¿Aprende algo el modelo?",
        "Работает ли новый лосс?",
        "هل النموذج الأكبر أفضل؟",
        "האם המודל לומד?",
        "क्या मॉडल सीख रहा है?",
        "آیا مدل می‌آموزد؟",
        "模型学到东西了吗",
        "比较8B和3B",
        "测试新的损失函数是否更好",
        "モデルの比較",
        "モデルは学習しているか？",
        "모델이 학습하는가",
        "모델 비교",
        "โมเดลเรียนรู้หรือไม่",
        "Mô hình có học được không?",
        "Does 8B beat 3B? 🚀",
        "ＤＯＥＳ ８Ｂ ＢＥＡＴ ３Ｂ",
    ],
)
def test_a_purpose_that_says_something_passes_in_any_language(purpose: str) -> None:
    assert says_nothing(purpose, "finetune-8b", ("python", "train.py")) is None


@pytest.mark.parametrize(
    ("purpose", "why"),
    [
        ("", "has no words"),
        ("   ", "has no words"),
        ("42", "has no words"),
        ("1 2 3", "has no words"),
        ("...!?", "has no words"),
        ("🚀🚀", "has no words"),
        ("\u200b\u200d", "has no words"),
        ("finetune-8b", "is what the job is called"),
        ("Finetune 8B!", "is what the job is called"),
        ("8b finetune", "is what the job is called"),
        ("python train.py", "is what the job is called"),
        ("train.py", "is what the job is called"),
        ("test", "is too little"),
        ("Test test.", "is too little"),
        ("TEST TEST TEST", "is too little"),
        ("testtest", "is too little"),
        ("test123", "is too little"),
        ("asdf", "is too little"),
        ("asdfasdf jkl", "is too little"),
        ("qwertz uiop", "is too little"),
        ("run", "is too little"),
        ("job", "is too little"),
        ("foo bar", "is too little"),
        ("experiment 3", "is too little"),
        ("run3 exp4 v2", "is too little"),
        ("just a quick test", "is too little"),
        ("a b c", "is too little"),
        ("aaaa bbbb", "is too little"),
        ("training", "is too little"),
        ("training training training", "is too little"),
        ("测试", "is too little"),
        ("测试测试", "is too little"),
        ("训练", "is too little"),
        ("哈哈哈哈", "is too little"),
        ("テスト", "is too little"),
        ("테스트 테스트", "is too little"),
        ("ทดสอบ", "is too little"),
        ("परीक्षण", "is too little"),
        ("тест", "is too little"),
    ],
)
def test_a_purpose_that_says_nothing_is_told_why_with_an_example(purpose: str, why: str) -> None:
    said = says_nothing(purpose, "finetune-8b", ("python", "train.py", "--config", "8b.yaml"))
    assert said is not None
    assert why in said
    assert said.endswith('like "Does finetune-8b beat the baseline on the held-out set?"')


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("finetune-8b", "finetune-8b"),
        ("whisper.py", "whisper"),
        ("train.py", "the larger model"),
        ("true", "the larger model"),
        ("test", "the larger model"),
        ("job 3", "the larger model"),
        ("", "the larger model"),
        ('a"b', "the larger model"),
        ("x" * 128, "the larger model"),
        ("比较模型", "比较模型"),
    ],
)
def test_the_example_is_made_from_the_job_s_name_where_that_says_something(name: str, about: str) -> None:
    assert example(name) == f"Does {about} beat the baseline on the held-out set?"
    assert says_nothing(example(name), name) is None


@given(st.text(max_size=300), st.text(max_size=130), st.lists(st.text(max_size=40), max_size=4))
def test_whatever_is_written_is_judged_in_one_printable_line(
    purpose: str, name: str, command: list[str]
) -> None:
    said = says_nothing(purpose, name.strip() if name.isprintable() else "", command)
    if said is not None:
        assert said.isprintable()
        assert len(said) < 400


@given(st.text(max_size=100))
def test_a_purpose_never_passes_as_the_name_of_its_job(text: str) -> None:
    assert says_nothing(text, text) is not None


@given(st.text(max_size=50), st.text(max_size=50))
def test_more_words_never_make_it_say_less(some: str, more: str) -> None:
    if says_nothing(some) is None:
        assert says_nothing(f"{some} {more}") is None


def test_long_texts_do_no_harm() -> None:
    for text in ("x" * 100_000, "ab " * 30_000, "测试" * 30_000, "e" + "\u0301\u0316" * 100_000):
        assert says_nothing(text) is not None
        assert says_nothing("Does it help?", text, (text,) * 10) is None
    assert says_nothing("Does it help? " * 10_000) is None


LIMITS = st.none() | st.floats(0, 1e9)
TEXTS = st.none() | st.text(min_size=1, max_size=40)


@given(LIMITS, TEXTS, st.sampled_from([{}, *ENDS]), st.sampled_from(REQUIRES), st.booleans(), st.booleans())
def test_what_passes_strict_is_never_warned_of_and_what_is_warned_of_is_refused_there(
    limit: float | None,
    purpose: str | None,
    end: dict[str, Any],
    require: Require,
    owned: bool,
    attended: bool,
) -> None:
    one = job(limit, purpose=purpose, **end)
    found = judge(one, require, is_owned=owned, attended=attended)
    strict = judge(one, "strict", is_owned=owned, attended=attended)
    if found.warnings or found.refusal:
        assert strict.refusal is not None
    if strict.refusal is None:
        assert (found.asks, found.warnings, found.refusal) == ((), (), None)
    assert not (found.refusal and found.require == "off")
