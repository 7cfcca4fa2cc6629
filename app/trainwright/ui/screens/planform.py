"""The left side of Plan: machine, workload, settings, input; each setting fixed or free."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from PySide6.QtWidgets import QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.messages.keys import short, value_name
from trainwright.plan.lessons import LESSON_OF
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import model_name
from trainwright.ui import plans, tokens
from trainwright.ui.glance import Glance
from trainwright.ui.i18n import tr
from trainwright.ui.names import gpu_name, model_facts, rented_name, search_machines
from trainwright.ui.partstaken import put_part
from trainwright.ui.screens import applies, choices, objective, values
from trainwright.ui.screens.choices import named, verbatim, weights
from trainwright.ui.screens.form import Group, Row, row_label, taught
from trainwright.ui.screens.formparts import Equation, FactLine, Pair, Words, gpu_count
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Hairline, Scroll, Surface
from trainwright.ui.widgets.buttons import Lock
from trainwright.ui.widgets.controls import Choice, Combo, Decimal, Segmented, Stepper, Switch
from trainwright.ui.widgets.modelpicker import ModelPicker
from trainwright.ui.widgets.picker import Picker
from trainwright.workload import FullSettings
from trainwright.workload.settings import USUAL_IMPLEMENTATION

_WIDTH = 340


# Long: a method for each kind of row and each choice.
class PlanForm(Surface):
    """The form; it shows the session's plan and edits it."""

    def __init__(self, session: Session) -> None:
        super().__init__("right", padding=(0, 0, 1, 0), gap=0)
        self._session = session
        self._fixed: QWidget | None = None
        self._groups: list[Group] = []
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(tokens.XL, tokens.L, tokens.M, tokens.L)
        self._column.setSpacing(11)
        self.setFixedWidth(_WIDTH)
        self._build()
        self._column.addStretch(1)
        self._scroll = Scroll(body)
        self._scroll.fitted.connect(self._fit)
        self.column.addWidget(self._scroll)
        session.reported.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the plan as it stands."""
        plan = self._session.plan
        if plan is None:
            return
        settings = self._session.settings
        for group in self._groups:
            for row in group.rows:
                row.show_plan(plan, settings)
        widest = max(group.widest_label for group in self._groups)
        for group in self._groups:
            group.widen_labels(widest)
        for group in self._groups[-2:]:
            group.setVisible(plan.workload.trains)
        serving = "" if plan.workload.trains else ".infer"
        self._fixed_note.entitle(Message.of(f"ui.group.settings{serving}"))
        self._show_model(plan)
        self._show_gpu(plan)
        self._show_counts(plan, settings)

    def _fit(self) -> None:
        self.setFixedWidth(max(_WIDTH, self._scroll.minimumWidth() + 1))

    # Groups

    def _build(self) -> None:
        for index, make in enumerate(
            (self._machine, self._workload, self._settings, self._loop, self._input)
        ):
            if index:
                self._column.addWidget(Hairline())
            group = make()
            self._groups.append(group)
            self._column.addWidget(group)

    def _machine(self) -> Group:
        group = Group(Message.of("ui.group.machine"))
        self.gpu = Picker(search_machines, name=Message.of("ui.key.gpu"), icon="cpu",
                          hint=Message.of("ui.picker.gpu"))  # fmt: skip
        self.gpu.chosen.connect(self._choose_gpu)
        group.add(Row("machine.gpus", row_label(Message.of("ui.key.gpu")), self.gpu))
        self._gpu_facts = FactLine()
        group.add_wide(self._gpu_facts, from_column=1)
        counter = Stepper(1, name=Message.of("ui.key.count"), high=64)
        counter.chosen.connect(self._choose_count)
        group.add(Row("count", self._label("count"), counter,
                      value=lambda plan, _: gpu_count(plan) // plan.machine.nodes,
                      applies=lambda plan: not plan.machine.fixed))  # fmt: skip
        nodes = Stepper(1, name=Message.of("ui.key.nodes"), high=64)
        nodes.chosen.connect(lambda number: self._session.set_key("machine.nodes", number))
        group.add(Row("nodes", row_label(Message.of("ui.key.nodes")), nodes,
                      value=lambda plan, _: plan.machine.nodes,
                      applies=lambda plan: plan.machine.network is not None))  # fmt: skip
        limit = Stepper(
            0, name=Message.of("ui.key.power_limit"), low=0, high=10_000,
            unit=Message.of("ui.unit.watts"), absent=Message.of("ui.form.absent"),
        )  # fmt: skip
        limit.setSingleStep(10)
        limit.chosen.connect(self._choose_power_limit)
        group.add(Row("power_limit", row_label(Message.of("ui.key.power_limit")), limit,
                      value=lambda plan, _: values.power_limit(plan),
                      applies=lambda plan: not plan.machine.fixed))  # fmt: skip
        memory = Stepper(
            0, name=Message.of("ui.key.memory_gib"), low=0, high=100_000,
            unit=Message.of("ui.unit.gib"), absent=Message.of("ui.form.absent"),
        )  # fmt: skip
        memory.setSingleStep(8)
        memory.chosen.connect(
            lambda gib: self._session.set_key("machine.memory_gib", gib or None, merge=True)
        )
        group.add(Row("memory_gib", row_label(Message.of("ui.key.memory_gib")), memory,
                      value=lambda plan, _: round(plan.machine.memory_gib or 0),
                      applies=values.memory_is_stated))  # fmt: skip
        system = Segmented(
            named("system", choices.SYSTEMS), "linux", name=Message.of("ui.key.system")
        )
        system.chosen.connect(lambda value: self._session.set_key("machine.system", value))
        group.add(Row("system", row_label(Message.of("ui.key.system")), system,
                      value=lambda plan, _: plan.machine.system,
                      applies=lambda plan: not plan.machine.local))  # fmt: skip
        return group

    def _workload(self) -> Group:
        group = Group(Message.of("ui.group.workload"))
        self.model = ModelPicker(self._glances, lambda: self._session.recent_models())
        self.model.chosen.connect(self._choose_model)
        self.model.file_wanted.connect(self._session.file_wanted)
        group.add(Row("model", row_label(Message.of("ui.key.model")), self.model))
        self._model_facts = FactLine()
        group.add_wide(self._model_facts, from_column=1)
        self._combo(
            group, "workload.task", named("task", choices.TASKS), lambda p, _: p.workload.task
        )
        objective.add(group, self._session)
        self._combo(group, "workload.reference", named("reference", choices.REFERENCES),
                    lambda p, _: p.workload.compared or choices.REFERENCES[0],
                    applies=lambda p: p.workload.objective == "dpo")  # fmt: skip
        self._lora(group)
        frozen = Words(name=Message.of("ui.key.frozen"), absent=Message.of("ui.form.absent"))
        frozen.chosen.connect(lambda v: self._session.set_key("workload.frozen", v or None))
        group.add(Row("frozen", row_label(Message.of("ui.key.frozen")), frozen,
                      value=lambda p, _: p.workload.frozen,
                      applies=lambda p: p.workload.task in ("pretrain", "full")))  # fmt: skip
        self._number(group, "workload.virtual_tokens", "tokens", absent=True,
                     applies=lambda p: p.workload.prompted > 0)  # fmt: skip
        self._number(group, "workload.inputs.sequence_length", "tokens", doubling=True,
                     applies=applies.trains_rows)  # fmt: skip
        self._number(group, "workload.inputs.mean_tokens", "tokens", absent=True,
                     applies=applies.trains_text)  # fmt: skip
        self._combo(group, "workload.inputs.batching", named("batching", choices.BATCHING),
                    lambda p, _: p.workload.inputs.batching or "padded",
                    applies=applies.trains_rows)  # fmt: skip
        self._number(group, "workload.inputs.image_size", "pixels",
                     applies=lambda p: p.workload.inputs.image_size is not None)  # fmt: skip
        for name in ("frames", "images"):
            self._number(group, f"workload.inputs.{name}", "",
                         applies=applies.has_input(name))  # fmt: skip
        for name, unit, where in (
            ("prompt_tokens", "tokens", applies.generates),
            ("new_tokens", "tokens", applies.generates),
            ("concurrent", "requests", lambda p: not p.workload.trains),
        ):
            self._number(group, f"workload.inputs.{name}", unit, absent=True,
                         applies=where)  # fmt: skip
        for name, low in (("generations", 2), ("updates", 1), ("iterations", 1)):
            self._number(group, f"workload.rollout.{name}", "", low=low,
                         applies=applies.writes, value=values.rollout(name))  # fmt: skip
        self._number(group, "workload.effective_batch", "samples", doubling=True,
                     applies=lambda p: p.workload.trains)  # fmt: skip
        self._samples(group)
        return group

    # Long: a line for each row of the form, in the order in which they are shown.
    def _settings(self) -> Group:
        group = Group(Message.of("ui.group.settings"))
        self._fixed_note = group.heading
        trains = applies.trains
        self._combo(
            group, "settings.precision", verbatim(choices.PRECISIONS), values.setting("precision")
        )
        self._number(group, "settings.micro_batch", "", lock=True, settings="micro_batch",
                     applies=trains)  # fmt: skip
        self._number(group, "settings.accumulation", "", lock=True, settings="accumulation",
                     applies=trains)  # fmt: skip
        spacings: list[Choice] = [
            (key, value_name("checkpointing", key)) for key in choices.CHECKPOINTING
        ]
        self._combo(group, "settings.checkpointing", spacings, values.setting("checkpointing"),
                    applies=applies.checkpoints)  # fmt: skip
        self._switch(group, "settings.activation_offload", applies=applies.checkpoints)
        self._combo(group, "settings.optimizer", named("optimizer", choices.OPTIMIZERS),
                    values.setting("optimizer"), applies=trains)  # fmt: skip
        self._switch(group, "settings.optimizer_in_backward", applies=trains)
        self._segments(group, "settings.optimizer_offload", named("offload", choices.OFFLOADS),
                       values.setting("optimizer_offload"), applies=trains)  # fmt: skip
        rate = Decimal(
            name=Message.of("ui.key.learning_rate"), absent=Message.of("ui.form.by-task")
        )
        rate.chosen.connect(lambda value: self._session.set_key("settings.learning_rate", value))
        group.add(Row("learning_rate", row_label(Message.of("ui.key.learning_rate")), rate,
                      value=lambda plan, _: plan.settings.learning_rate or 0.0,
                      applies=trains))  # fmt: skip
        self._combo(group, "settings.strategy", named("strategy", choices.STRATEGIES),
                       values.setting("strategy"),
                       applies=lambda p: gpu_count(p) > 1 and p.workload.trains)  # fmt: skip
        self._sharing(group)
        self._segments(group, "settings.attention", verbatim(choices.ATTENTION),
                       values.setting("attention"),
                       applies=lambda p: p.workload.inputs.image_size is None)  # fmt: skip
        self._combo(group, "settings.cross_entropy", named("cross_entropy", choices.CROSS_ENTROPY),
                    values.setting("cross_entropy"), applies=applies.trains_text)  # fmt: skip
        self._combo(group, "settings.quantization", named("quantization", choices.FROZEN),
                    values.setting("quantization"),
                    applies=applies.quantizes)  # fmt: skip
        self._combo(group, "settings.engine", verbatim(choices.ENGINES), values.setting("engine"),
                    applies=lambda p: not p.workload.trains)  # fmt: skip
        self._combo(group, "settings.quantization", weights(choices.SERVED),
                    values.setting("quantization"),
                    applies=lambda p: not p.workload.trains)  # fmt: skip
        self._combo(group, "settings.kv_cache", verbatim(choices.KV_CACHE),
                    values.setting("kv_cache"),
                    applies=lambda p: not p.workload.trains)  # fmt: skip
        self._combo(group, "settings.generation", named("generation", choices.GENERATIONS),
                    values.setting("generation"), applies=applies.writes)  # fmt: skip
        share = Decimal(name=Message.of("ui.key.memory_share"), absent=Message.of("ui.form.absent"))
        share.chosen.connect(lambda v: self._session.set_key("settings.memory_share", v))
        self._add(group, "settings.memory_share", share, values.setting("memory_share"), lock=False,
                  applies=applies.shares)  # fmt: skip
        self._combo(group, "settings.allocator", named("allocator", choices.ALLOCATORS),
                    values.setting("allocator"))  # fmt: skip
        self._switch(group, "settings.channels_last",
                     applies=lambda p: p.workload.inputs.image_size is not None)  # fmt: skip
        self._switch(group, "settings.compile")
        self._equation = Equation()
        group.add_wide(self._equation)
        return group

    def _loop(self) -> Group:
        """Who runs the step; the recipe's defaults can be set one by one."""
        group = Group(Message.of("ui.group.loop"))
        self._combo(group, "settings.recipe", verbatim(choices.RECIPES),
                    lambda _, s: (s.recipe if s else None) or "plain",
                    applies=applies.trains)  # fmt: skip
        self._combo(group, "settings.framework", named("framework", choices.FRAMEWORKS),
                    values.setting("framework"), applies=applies.trains)  # fmt: skip
        self._segments(group, "settings.optimizer_implementation",
                       verbatim(choices.IMPLEMENTATIONS),
                       values.setting("optimizer_implementation"),
                       applies=lambda p: applies.updates(p) in USUAL_IMPLEMENTATION)  # fmt: skip
        momentum = Decimal(name=Message.of("ui.key.momentum"), absent=Message.of("ui.form.absent"))
        momentum.chosen.connect(lambda v: self._session.set_key("settings.momentum", v or 0))
        self._add(group, "settings.momentum", momentum, values.setting("momentum"), lock=True,
                  applies=lambda p: applies.updates(p) == "sgd")  # fmt: skip
        rows: tuple[tuple[str, Sequence[str], Callable[[Plan], bool]], ...] = (
            ("kbit_preparation", choices.KBIT, applies.quantizes),
            ("adapter_dtype", choices.ADAPTER_DTYPES, applies.adapts),
            ("scores_upcast", choices.SCORES, applies.trains_text),
            ("output_kept", choices.OUTPUT_KEPT, applies.trains),
            ("gradients_cleared", choices.GRADIENTS, applies.trains),
        )
        for name, known, shown in rows:
            words = named(name, known)
            self._combo(group, f"settings.{name}", words, values.setting(name), applies=shown)
        self._switch(group, "settings.double_quantization", applies=applies.quantizes)
        self._switch(group, "settings.input_gradients", applies=applies.adapts)
        self._switch(group, "settings.reentrant", applies=applies.trains)
        for name in ("loss_in_model", "expanded_heads", "separate_experts", "position_tables",
                     "softmax_inputs"):  # fmt: skip
            self._switch(group, f"settings.{name}", applies=applies.trains_text)
        return group

    def _input(self) -> Group:
        group = Group(Message.of("ui.group.input"))
        layouts = ("absent", "synthetic", "files", "shards", "memory")
        layout = Combo(named("dataset", layouts), "absent", name=Message.of("ui.key.dataset"))
        layout.chosen.connect(self._choose_dataset)
        group.add(Row("dataset", row_label(Message.of("ui.key.dataset")), layout,
                      value=lambda plan, _: values.dataset(plan)))  # fmt: skip
        self._number(group, "settings.loader.num_workers", "", low=0, lock=True,
                     settings="num_workers", applies=applies.trains)  # fmt: skip
        self._number(group, "settings.loader.prefetch_factor", "", lock=True,
                     settings="prefetch_factor", applies=applies.trains)  # fmt: skip
        return group

    # Rows

    def _add(
        self, group: Group, key: str, control: Any, value: Any, *, lock: bool, applies: Any
    ) -> None:
        name = Message.of(f"ui.key.{short(key)}")
        made = Lock(name, free=False) if lock else None
        if made is not None:
            made.clicked.connect(self._toggle(key, value))
        group.add(Row(key, self._label(key), control, made, value, applies))

    def _label(self, key: str) -> QWidget:
        """Return a setting's name, with a mark where a lesson explains it."""
        label = row_label(Message.of(f"ui.key.{short(key)}"))
        lesson = LESSON_OF.get(key.removeprefix("settings."))
        if lesson is None:
            return label
        return taught(label, partial(self._session.lesson_wanted.emit, lesson))

    def _toggle(self, key: str, value: Any) -> Callable[[bool], None]:
        def toggled(free: bool) -> None:
            plan = self._session.plan
            if plan is None:
                return
            shown = None if free else value(plan, self._session.settings)
            self._session.set_key(key, shown)

        return toggled

    def _combo(
        self, group: Group, key: str, choices: list[Choice], value: Any, *, applies: Any = None
    ) -> None:
        combo = Combo(choices, choices[0][0], name=Message.of(f"ui.key.{short(key)}"))
        combo.chosen.connect(lambda chosen: self._session.set_key(key, chosen))
        lock = key.startswith("settings.")
        self._add(group, key, combo, value, lock=lock, applies=applies)

    def _segments(
        self, group: Group, key: str, choices: list[Choice], value: Any, *, applies: Any = None
    ) -> None:
        name = Message.of(f"ui.key.{short(key)}")
        segments = Segmented(choices, choices[0][0], name=name)
        segments.chosen.connect(lambda chosen: self._session.set_key(key, chosen))
        self._add(group, key, segments, value, lock=True, applies=applies)

    def _switch(self, group: Group, key: str, *, applies: Any = None) -> None:
        name = short(key)
        switch = Switch(False, name=Message.of(f"ui.key.{name}"),
                        on=Message.of("ui.on"), off=Message.of("ui.off"))  # fmt: skip
        switch.chosen.connect(lambda on: self._session.set_key(key, on))
        self._add(group, key, switch, values.setting(name), lock=True, applies=applies)

    def _number(
        self,
        group: Group,
        key: str,
        unit: str,
        *,
        low: int = 1,
        doubling: bool = False,
        lock: bool = False,
        absent: bool = False,
        settings: str = "",
        applies: Any = None,
        value: Any = None,
    ) -> None:
        stepper = Stepper(
            max(low, 1), name=Message.of(f"ui.key.{short(key)}"), low=0 if absent else low,
            unit=Message.of(f"ui.unit.{unit}") if unit else "", doubling=doubling,
            absent=Message.of("ui.form.absent") if absent else "",
        )  # fmt: skip
        stepper.chosen.connect(
            lambda value: self._session.set_key(key, value or (None if absent else 0), merge=True)
        )
        read = values.setting(settings) if settings else values.at(key, 0 if absent else None)
        self._add(group, key, stepper, value or read, lock=lock, applies=applies)

    def _sharing(self, group: Group) -> None:
        def shares(plan: Plan) -> bool:
            return plan.settings.strategy == "fsdp2"

        for key in ("reshard_after_forward", "shard_offload"):
            self._switch(group, f"settings.{key}", applies=shares)
        self._degree(group, "shard_degree", 4096, "all", shares)
        self._degree(group, "tensor_degree", 64, "absent", applies.splits_layers)
        self._degree(group, "pipeline_stages", 64, "all", lambda p: p.settings.strategy == "pp")

    def _degree(self, group: Group, key: str, most: int, absent: str, applies: Any) -> None:
        name, put = Message.of(f"ui.key.{key}"), self._session.set_key
        degree = Stepper(0, name=name, low=0, high=most, absent=Message.of(f"ui.form.{absent}"))
        degree.setSingleStep(2)
        degree.chosen.connect(lambda number: put(f"settings.{key}", number or None))
        group.add(Row(key, row_label(name), degree,
                      value=lambda plan, made: getattr(made or plan.settings, key) or 0,
                      applies=applies))  # fmt: skip

    def _lora(self, group: Group) -> None:
        rank = Stepper(16, name=Message.of("ui.key.rank"), high=4096, doubling=True)
        alpha = Stepper(32, name=Message.of("ui.key.alpha"), high=65536, doubling=True)
        rank.chosen.connect(lambda v: self._session.set_key("workload.lora.rank", v, merge=True))
        alpha.chosen.connect(lambda v: self._session.set_key("workload.lora.alpha", v, merge=True))
        holder = Pair(rank, alpha)
        group.add(Row("lora", row_label(Message.of("ui.key.lora")), holder, value=values.lora_of,
                      applies=applies.adapts))  # fmt: skip
        self._combo(group, "workload.lora.variant", named("variant", choices.VARIANTS),
                    lambda p, _: p.workload.lora.variant if p.workload.lora else "lora",
                    applies=applies.adapts)  # fmt: skip
        dropout = Decimal(
            name=Message.of("ui.key.lora.dropout"), absent=Message.of("ui.form.absent")
        )
        dropout.chosen.connect(lambda v: self._session.set_key("workload.lora.dropout", v or 0))
        group.add(Row("lora.dropout", row_label(Message.of("ui.key.lora.dropout")), dropout,
                      value=lambda p, _: p.workload.lora.dropout if p.workload.lora else 0.0,
                      applies=applies.adapts))  # fmt: skip

    def _samples(self, group: Group) -> None:
        absent = Message.of("ui.form.absent")
        samples = Stepper(0, name=Message.of("ui.key.sample-count"), low=0, absent=absent)
        epochs = Stepper(0, name=Message.of("ui.key.epochs"), low=0, absent=absent)
        samples.setSingleStep(1000)
        samples.chosen.connect(
            lambda v: self._session.set_key("workload.samples", v or None, merge=True)
        )
        epochs.chosen.connect(
            lambda v: self._session.set_key("workload.epochs", v or None, merge=True)
        )
        holder = Pair(samples, epochs)
        group.add(Row("samples", row_label(Message.of("ui.key.samples")), holder,
                      value=lambda p, _: (p.workload.samples or 0, round(p.workload.epochs or 0)),
                      applies=applies.trains))  # fmt: skip

    # What lies outside rows

    def _show_model(self, plan: Plan) -> None:
        self.model.show_value(model_name(plan))
        facts = self._session.facts
        packed = facts is not None and facts.settings.quantization != "none"
        known = model_facts(plan, facts.profile.model, packed=packed) if facts else ""
        self._model_facts.tell(known)

    def _show_gpu(self, plan: Plan) -> None:
        if plan.machine.local:
            self.gpu.show_value(tr("ui.form.this-computer"))
            self._gpu_facts.tell("")
            return
        rented = plan.machine.cloud
        title, facts = rented_name(rented) if rented else gpu_name(plan.machine.gpus[0].id)
        self.gpu.show_value(title)
        self._gpu_facts.tell(facts)

    def _show_counts(self, plan: Plan, settings: FullSettings | None) -> None:
        locks = [row for group in self._groups for row in group.rows
                 if row.lock is not None and row.lock.isVisibleTo(self)]  # fmt: skip
        free = sum(row.lock.isChecked() for row in locks if row.lock is not None)
        self._fixed_note.annotate(tr("ui.form.fixed-free", fixed=len(locks) - free, free=free))
        self._equation.setVisible(settings is not None and plan.workload.trains)
        if settings is not None:
            self._equation.tell(plan, settings)

    def _choose_model(self, key: str) -> None:
        plan = self._session.plan
        if plan is None:
            return
        from trainwright.profile.presets import presets

        preset = presets()[key]
        label = Message.of("ui.edit.model", value=preset.name)
        self._session.put(plans.for_preset(plan, preset), label)
        self._session.model_chosen.emit(key)

    def _glances(self, ids: list[str]) -> Iterator[Glance]:
        plan = self._session.plan
        return iter(()) if plan is None else self._session.core.glances(plan, ids)

    def _choose_gpu(self, key: str) -> None:
        plan = self._session.plan
        if plan is None:
            return
        put_part(self._session, "gpu", key, plans.edit_label("gpu", gpu_name(key)[0]))

    def _choose_count(self, count: int) -> None:
        plan = self._session.plan
        if plan is not None and plan.machine.gpus:
            gpus = [gpu.model_dump(exclude_none=True) for gpu in plan.machine.gpus]
            gpus[0]["count"] = count
            label = plans.edit_label("count", count)
            self._session.set_keys({"machine.gpus": gpus}, key="count", label=label)

    def _choose_power_limit(self, watts: int) -> None:
        plan = self._session.plan
        if plan is not None and plan.machine.gpus:
            gpus = [gpu.model_dump(exclude_none=True) for gpu in plan.machine.gpus]
            gpus[0]["power_limit_w"] = watts or None
            label = plans.edit_label("power_limit", watts or None)
            self._session.set_keys({"machine.gpus": gpus}, key="power_limit", label=label)

    def _choose_dataset(self, value: str) -> None:
        choice: Any = {"absent": None, "synthetic": "synthetic"}.get(value, {"layout": value})
        self._session.set_key("workload.dataset", choice)
