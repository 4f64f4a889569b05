"""Networks with parameters: sizes against model cards, work and bytes against counts that share no code."""

from __future__ import annotations

import re
from pathlib import Path

import family_counts as counts
import pytest
from studies.language_model_runs import MACHINES, Cell, cells, mapped
from studies.language_models import shares, tables

from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.layer_kinds import OTHERS, kind_of
from tilewright.workloads.blueprint.decoders import Experts, loads
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.families import FAMILIES, completions, parameters_of
from tilewright.workloads.network import Network

CARDS = {
    "bert[size=base]": 109_482_240,
    "bert[size=large]": 335_141_888,
    "clip[size=B32]": 151_277_313,
    "clip[size=B16]": 149_620_737,
    "clip[size=L14]": 427_616_513,
    "convnext[size=T]": 28_589_128,
    "convnext[size=S]": 50_223_688,
    "convnext[size=B]": 88_591_464,
    "convnext[size=L]": 197_767_336,
    "deepseek-v3": 671e9,
    "gpt2[size=small]": 124_439_808,
    "gpt2[size=medium]": 354_823_168,
    "gpt2[size=large]": 774_030_080,
    "gpt2[size=xl]": 1_557_611_200,
    "gpt3[size=6.7B]": 6.7e9,
    "gpt3[size=175B]": 175e9,
    "llama3[size=8B]": 8.03e9,
    "llama3[size=70B]": 70.6e9,
    "mamba[size=130M]": 130e6,
    "mamba[size=370M]": 370e6,
    "mamba[size=790M]": 790e6,
    "mamba[size=1.4B]": 1.37e9,
    "mamba[size=2.8B]": 2.77e9,
    "mixtral[size=8x7B]": 46.7e9,
    "mixtral[size=8x22B]": 141e9,
    "mobilenet-v3[size=large]": 5_483_032,
    "mobilenet-v3[size=small]": 2_542_856,
    "qwen3[size=8B]": 8.2e9,
    "qwen3[size=30B-A3B]": 30.5e9,
    "stable-diffusion": 859_520_964,
    "t5[size=small]": 60_506_624,
    "t5[size=base]": 222_903_552,
    "t5[size=large]": 737_668_096,
    "t5[size=3B]": 2_851_598_336,
    "t5[size=11B]": 11_307_321_344,
    "vit[size=B]": 86_567_656,
    "vit[size=L]": 304_326_632,
    "whisper[size=tiny]": 37_760_640,
    "whisper[size=base]": 72_593_920,
    "whisper[size=small]": 244e6,
    "whisper[size=medium]": 769e6,
    "whisper[size=large]": 1550e6,
}
"""Parameters as the model card, the paper or the checkpoint has them (``docs/networks.md``)."""
PHASED = ("deepseek-v3", "gpt2", "gpt3", "llama3", "mamba", "mixtral", "qwen3", "t5", "whisper")
DECODERS = {
    "llama3[size=8B,{}]": counts.LLAMA_8B,
    "llama3[size=70B,{}]": counts.LLAMA_70B,
    "qwen3[size=8B,{}]": counts.QWEN_8B,
    "qwen3[size=30B-A3B,{}]": counts.QWEN_30B,
    "mixtral[size=8x7B,{}]": counts.MIXTRAL_7B,
    "mixtral[size=8x22B,{}]": counts.MIXTRAL_22B,
    "gpt2[size=xl,{}]": counts.gpt(1600, 48, 25, 1024),
    "gpt3[size=6.7B,{}]": counts.gpt(4096, 32, 32, 2048),
    "gpt3[size=175B,{}]": counts.gpt(12_288, 96, 96, 2048),
}
PASSES = ((1, 2048, 0), (32, 1, 8191), (3, 5, 7))
"""Sequences, new tokens, cached tokens."""
LARGE = ("llama3[size=70B,{}]", "mixtral[size=8x22B,{}]", "gpt3[size=175B,{}]")
"""Sizes of families that have a smaller one: one pass of them is counted."""


def moved(network: Network) -> int:
    """Elements that the layers with products read and write."""
    return sum(
        tensor.footprint(layer.operator.bounds)
        for layer in network.mac_layers
        for tensor in layer.operator.tensors
    )


@pytest.mark.parametrize("text", CARDS)
def test_parameters_are_those_of_the_model_card(text: str) -> None:
    """Every published size has its parameters, within 1 %, and a whole count of a checkpoint exactly."""
    ours, card = resolve_model(text).parameters, CARDS[text]
    assert ours == pytest.approx(card, rel=0.01)
    if isinstance(card, int):
        assert ours == card


def test_every_size_has_a_card() -> None:
    """No family has a size that the list of cards lacks."""
    known = {text.partition("[")[0] for text in CARDS}
    assert known == set(FAMILIES.names())
    for name in FAMILIES.names():
        choices = next(p.about for p in parameters_of(name) if p.name == "size")
        for size in choices.removeprefix("one of ").split(", "):
            assert f"{name}[size={size}]" in CARDS or name in CARDS, (name, size)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [(text, sizes) for text in DECODERS for sizes in (PASSES if text not in LARGE else PASSES[1:2])],
)
def test_work_and_bytes_of_decoders_are_those_counted_apart(text: str, sizes: tuple[int, int, int]) -> None:
    """Multiply-accumulates, elements of all products and parameters agree with closed forms."""
    batch, tokens, cached = sizes
    network = resolve_model(text.format(f"batch={batch},tokens={tokens},cached={cached}"))
    shape = DECODERS[text]
    assert network.parameters == counts.parameters(shape)
    assert network.macs == counts.macs(counts.products(shape, *sizes))
    expected = counts.elements(counts.products(shape, *sizes))
    assert moved(network) == expected


def test_the_latent_attention_reads_one_cache_for_all_heads() -> None:
    """In decode a block of DeepSeek-V3 reads 576 features per cached token, for all heads."""
    network = resolve_model("deepseek-v3[phase=decode,batch=2,cached=99]")
    scores, mix = (network.layer(f"block1.attention.{part}").operator for part in ("scores", "mix"))
    assert scores.tensor("B").footprint(scores.bounds) == 2 * 100 * (512 + 64)
    assert mix.tensor("B").footprint(mix.bounds) == 2 * 100 * 512
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 128 * 128 * 512 * 2 + 128 * 128 * 7168
    context = 128 * 100 * (576 + 512)
    dense, expert = 3 * 7168 * 18_432, 3 * 7168 * 2048
    blocks = 61 * (attention + context) + 3 * dense + 58 * (9 * expert + 7168 * 256)
    assert network.macs == 2 * (blocks + 7168 * 129_280)


def test_the_latent_attention_makes_keys_of_every_head_in_prefill() -> None:
    """Without absorbed projections every head has keys of 192 and values of 128 for the whole context."""
    network = resolve_model("deepseek-v3[batch=2,tokens=50,cached=30]")
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 128 * 128 * 7168
    made, context = 80 * 512 * 128 * 256, 50 * 128 * 80 * (192 + 128)
    dense, expert = 3 * 7168 * 18_432, 3 * 7168 * 2048
    blocks = 61 * (50 * attention + made + context) + 50 * (3 * dense + 58 * (9 * expert + 7168 * 256))
    assert network.macs == 2 * (blocks + 7168 * 129_280)


@pytest.mark.parametrize(("phase", "tokens"), [("prefill", 24), ("decode", 1)])
def test_mamba_is_counted_apart(phase: str, tokens: int) -> None:
    """Projections, the window and the sums over the state; decay and state multiply nothing."""
    network = resolve_model(f"mamba[size=790M,phase={phase},tokens={tokens},batch=2]")
    d, e, n, r = 1536, 3072, 16, 96
    block = d * 2 * e + 4 * e + e * (r + 2 * n) + r * e + e * n + e * d
    assert network.macs == 2 * (tokens * 48 * block + 50_280 * d)


def test_encoders_and_decoders_are_counted_apart() -> None:
    """T5 and Whisper in both phases: the decoder alone decodes, over keys that the encoder left."""
    d, f, w = 768, 3072, 32_128
    block, batch, source, new, past = 12, 3, 20, 4, 9
    feed, four = 2 * d * f, 4 * d * d
    encoder = source * (four + feed) + 2 * source * source * d
    own = new * (four + feed) + 2 * new * (new + past) * d
    prefill = resolve_model(f"t5[batch={batch},source={source},tokens={new},cached={past}]")
    crossed = new * 2 * d * d + source * 2 * d * d + 2 * new * source * d
    assert prefill.macs == batch * (block * (encoder + own + crossed) + w * d)
    decode = resolve_model(f"t5[phase=decode,batch={batch},source={source},tokens={new},cached={past}]")
    assert decode.macs == batch * (block * (own + new * 2 * d * d + 2 * new * source * d) + w * d)
    whisper = resolve_model("whisper[size=tiny,phase=decode,cached=9]")
    d, f, w = 384, 1536, 51_865
    assert whisper.macs == 4 * (4 * d * d + 2 * d * f + 2 * 10 * d + 2 * d * d + 2 * 1500 * d) + w * d
    heard = resolve_model("whisper[size=tiny,tokens=10,cached=0]")
    sound = 3000 * 3 * 80 * d + 1500 * 3 * d * d + 4 * 1500 * (4 * d * d + 2 * d * f + 2 * 1500 * d)
    told = 10 * (4 * d * d + 2 * d * f + 2 * 10 * d) + (2 * 10 + 2 * 1500) * d * d + 2 * 10 * 1500 * d
    assert heard.macs == sound + 4 * told + w * d
    assert heard.parameters == whisper.parameters


def test_pictures_are_counted_apart() -> None:
    """Published multiply-accumulates of networks on pictures, and those of transformers in closed form."""
    published = {"mobilenet-v3": 216.6e6, "mobilenet-v3[size=small]": 56.5e6, "convnext": 4.456e9}
    published |= {"convnext[size=S]": 8.684e9, "convnext[size=B]": 15.355e9, "convnext[size=L]": 34.361e9}
    for text, figure in published.items():
        assert resolve_model(text).macs == pytest.approx(figure, rel=1e-3), text
    d, tokens = 768, 197
    block = tokens * 12 * d * d + 2 * tokens * tokens * d
    assert resolve_model("vit[batch=5]").macs == 5 * (196 * 768 * d + 12 * block + d * 1000)
    d, tokens = 1024, 48
    block = tokens * 12 * d * d + 2 * tokens * tokens * d
    assert resolve_model("bert[size=large,tokens=48]").macs == 24 * block + d * d
    network = resolve_model("stable-diffusion")
    attended = sum(layer.operator.macs for layer in network.layers if layer.name.endswith(("scores", "mix")))
    assert network.macs - attended == pytest.approx(338.75e9, rel=1e-3)


def test_every_active_expert_loads_its_own_weights_and_others_none() -> None:
    """Eight assignments touch eight of 128 experts; shares give experts different numbers of tokens."""
    single = resolve_model("qwen3[size=30B-A3B,phase=decode]").layer("block1.experts.gate").operator
    assert single.tensor("B").footprint(single.bounds) == 8 * 2048 * 768
    assert single.bounds["M"] == 1
    shared = resolve_model("mixtral[tokens=16,shares=3/3/1/1]")
    gates = [
        layer.operator for layer in shared.layers if re.fullmatch(r"block1\.experts\.gate\d", layer.name)
    ]
    assert [(gate.bounds.get("B", 1), gate.bounds["M"]) for gate in gates] == [(2, 12), (2, 4)]
    assert shared.parameters == resolve_model("mixtral").parameters
    uneven = resolve_model("mixtral[tokens=15]")
    gates = [
        layer.operator for layer in uneven.layers if re.fullmatch(r"block1\.experts\.gate\d", layer.name)
    ]
    assert [(gate.bounds.get("B", 1), gate.bounds["M"]) for gate in gates] == [(6, 4), (2, 3)]


@pytest.mark.parametrize("tokens", [1, 2, 7, 100])
@pytest.mark.parametrize("shares", [(), (1, 1), (3, 2, 2), (5, 1, 1, 3)])
def test_all_assignments_are_dealt(tokens: int, shares: tuple[int, ...]) -> None:
    """The loads of experts add up to the assignments, follow the shares to the token, and repeat no token."""
    dealt = loads(Experts(8, 2, 4, shares), tokens)
    assert sum(dealt) == 2 * tokens
    assert max(dealt) <= tokens
    exact = sorted(2 * tokens * share / sum(shares) for share in shares)
    for load, share in zip(sorted(dealt), exact[-len(dealt) :], strict=False):
        assert abs(load - share) < 1


@pytest.mark.parametrize("shares", [(1,), (2, 1), (1, 1, 4)])
def test_no_expert_has_a_token_twice(shares: tuple[int, ...]) -> None:
    """A share above that of all tokens is refused."""
    with pytest.raises(InputError, match="some of them twice"):
        loads(Experts(8, 2, 4, shares), 9)


@pytest.mark.parametrize("name", PHASED)
def test_a_cache_is_appended_and_read(name: str) -> None:
    """In decode what is cached comes from outside; the new token's part is written by a layer of its own."""
    network = resolve_model(f"{name}[phase=decode,batch=2,cached=31]")
    if name == "mamba":
        states = [link for link in network.reads("block1.mixer.state") if link.producer is None]
        assert [link.tensor for link in states] == ["block1.mixer.state"]
        return
    block = "decoder1" if name in ("t5", "whisper") else "block1"
    scope = f"{block}.attention"
    part = "latent" if name == "deepseek-v3" else "key"
    written = network.layer(f"{scope}.append_{part}")
    assert not written.operator.is_mac
    reads = [link for link in network.reads(f"{scope}.scores") if link.operand == "B"]
    outside = sum(link.elements for link in reads if link.producer is None)
    inside = sum(link.elements for link in reads if link.producer is not None)
    assert outside == 31 * inside
    assert written.name in {link.producer for link in reads}


@pytest.mark.parametrize("name", FAMILIES.names())
def test_a_network_is_linked_throughout(name: str) -> None:
    """Every layer but those of the input reads another one, and one result leaves a network."""
    network = resolve_model(name)
    assert network.every_layer
    assert len(network.outputs) == 1
    silent = [layer.name for layer in network.layers if not network.reads(layer.name)]
    assert silent == []
    for layer in network.layers:
        operands = {tensor.name for tensor in layer.operator.inputs}
        stored = {"B", "W"} if layer.stored_weights else set()
        linked = {link.operand for link in network.reads(layer.name)}
        assert operands - linked <= stored, layer.name


@pytest.mark.parametrize("name", FAMILIES.names())
def test_work_grows_with_the_batch(name: str) -> None:
    """Three samples have three times the work, and no more parameters; a scope's batch is the network's."""
    single, three = resolve_model(name), resolve_model(name, batch=3)
    assert three.batch == 3
    assert three.parameters == single.parameters
    likeness = 6 * 512 if name == "clip" else 0
    assert three.macs == 3 * single.macs + likeness
    assert resolve_model(f"{name}[batch=3]").layers == three.layers


def test_a_name_states_every_parameter() -> None:
    """The name of a network gives the network again, whatever was left out or stood in another sequence."""
    for text in ("llama3", "llama3[phase=decode,size=70B]", " mixtral[ shares=1/2/2 , size=8x22B ]", "vit[]"):
        network = resolve_model(text)
        assert resolve_model(network.name) is network
        assert "tokens=None" not in network.name
    assert resolve_model("llama3[phase=decode,cached=8191,batch=32]").name == (
        "llama3[size=8B,phase=decode,tokens=1,cached=8191,batch=32,logits=last,widths=machine]"
    )
    values = {p.name: (p.value, p.default) for p in parameters_of("llama3[phase=decode]")}
    assert values["tokens"] == ("1", "2048")
    assert values["size"] == ("8B", "8B")
    assert parameters_of("resnet50") == ()
    assert set(FAMILIES.names()) <= set(list_models())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llama3[phase=decod]", "did you mean 'decode'?"),
        ("llama3[siz=8B]", "did you mean 'size'?"),
        ("llama3[size=7B]", "expected one of: 8B, 70B"),
        ("llama3[tokens=0]", "expected a whole number from 1 to"),
        ("llama3[tokens=1.5]", "expected a whole number from 1 to"),
        ("llama3[tokens=٣]", "expected a whole number from 1 to"),
        ("llama3[cached=-1]", "expected a whole number from 0 to"),
        ("llama3[batch=0]", "expected a whole number of at least 1"),
        ("llama3[batch=1,batch=2]", "given twice"),
        ("llama3[batch]", "expected option=value"),
        ("llama3[batch=3", "expected NAME or NAME[option=value,...]"),
        ("llama3[widths=w5]", "got 5 bits"),
        ("llama3[widths=w4w8]", "got w twice"),
        ("llama3[widths=16]", "such as w4a16c8s32"),
        ("lama3[batch=3]", "did you mean 'llama3'?"),
        ("mixtral[shares=1/0]", "expected even, or whole numbers above 0"),
        ("mixtral[shares=1/1/1/1/1/1/1/1/1]", "expected at most 8 experts, got 9"),
        ("mixtral[shares=9/1]", "some of them twice"),
        ("qwen3[shares=1/1]", "expected size=30B-A3B"),
        ("stable-diffusion[pixels=500]", "try 512"),
        ("llama3[batch=65536,tokens=9999999]", "expected at most 2,147,483,647"),
        ("resnet50[batch=3]", "did you mean 'resnet50'?"),
    ],
)
def test_bad_parameters_are_one_line_with_a_suggestion(text: str, message: str) -> None:
    """Each fault is told in one line that says what was expected."""
    with pytest.raises(InputError) as caught:
        resolve_model(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_batch_may_stand_in_one_place_only() -> None:
    """A batch beside the parameters must not contradict them."""
    assert resolve_model("vit[batch=2]", 2).batch == 2
    with pytest.raises(InputError, match="4 contradicts the batch 3"):
        resolve_model("vit[batch=4]", 3)


def test_half_written_parameters_are_completed() -> None:
    """Names of parameters that do not stand there yet, and their choices."""
    assert [*completions("llama3[size=8B,ph")] == [
        "llama3[size=8B,phase=",
        "llama3[size=8B,phase=prefill",
        "llama3[size=8B,phase=decode",
    ]
    assert [*completions("mixtral[size=8x2")] == ["mixtral[size=8x22B"]
    assert [*completions("llama3[size=8B,si")] == []
    assert [*completions("resnet50[")] == [] == [*completions("llama3")]


@pytest.mark.parametrize("name", PHASED)
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_every_product_of_a_language_model_has_a_kind(name: str, phase: str) -> None:
    """The study of language models names the kind of each layer that multiplies, and of no other sums."""
    network = resolve_model(f"{name}[phase={phase}]")
    kinds = {layer.name: kind_of(layer.name) for layer in network.mac_layers}
    unknown = {layer for layer, kind in kinds.items() if kind == OTHERS}
    assert {layer.rpartition(".")[2] for layer in unknown} <= {
        "convolution",
        "convolution1",
        "convolution2",
        "mix",
    }
    assert set(kinds.values()) >= {"words", *({"attention"} if name != "mamba" else set())}
    metrics = {"cycles": 2}
    layers = [{"names": [layer.name], "metrics": metrics} for layer in network.layers]
    shared = shares({"layers": layers})
    assert sum(shared.values()) == pytest.approx(1)
    assert shared["words"] == pytest.approx(1 / len(network))


def test_the_table_of_the_manual_has_the_parameters_of_every_size() -> None:
    """Each row of the manual's table names a size, its parameters and two sources."""
    page = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    table = page.partition("### Sources")[2].partition("\n### ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| `")
    ]
    assert {row[0].strip("`") for row in rows} == set(CARDS)
    for text, ours, _, *sources in rows:
        assert int(ours.replace(",", "")) == resolve_model(text.strip("`")).parameters
        assert len(sources) == 2
        assert all(sources)


def test_the_study_runs_every_family_and_tells_of_what_is_proven(tmp_path: Path) -> None:
    """Each family has its passes on each machine, in a file of its own; a document is a row of a table."""
    every = [*cells([*MACHINES], ["*"])]
    assert {cell.network.partition("[")[0] for cell in every} == set(FAMILIES.names())
    assert len({cell.file for cell in every}) == len(every)
    assert all(resolve_model(network) for network in {cell.network for cell in every} if "gpt2" in network)
    cell = Cell("nvdla-256", "mlp")
    (tmp_path / cell.file).write_text(mapped(cell, 60.0))
    head, *_, row, _ = tables([tmp_path / cell.file])
    assert head == "On nvdla-256:\n"
    assert row.startswith("| mlp | one pass | 1 | 4 of 4 | 100.0 % |")
