"""Opening and saving of the window's documents, and the one place that asks before work goes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainwright import reading, saving, yamltext
from trainwright.messages import Message, UserError
from trainwright.mig import drawings
from trainwright.mig.drawings import Drawing
from trainwright.plan.recovery import Recovered
from trainwright.plan.schema import Plan
from trainwright.review import Review
from trainwright.ui import asking, foreign, opening
from trainwright.ui.draft import Draft
from trainwright.ui.frame import Frame
from trainwright.ui.names import plan_name
from trainwright.ui.plans import local_plan, starting_plan
from trainwright.ui.preferences import Preferences
from trainwright.ui.session import Session


class Filing:
    """Saves plans and MIG boards of one window, and asks what becomes of unsaved edits."""

    def __init__(self, window: Frame, session: Session, preferences: Preferences) -> None:
        self._window, self._session, self._preferences = window, session, preferences
        self._asking = False
        self._left: dict[Path, str] = {}
        """Digests of changed files about which a person gave no answer: Save asks again."""
        session.may_replace = self.may_replace_plan

    # Opening

    def start_with(self, what: str, value: Any) -> None:
        """Begin as a person chose on the first screen."""
        match what:
            case "file":
                self.open(value)
            case "example":
                self._show_plan(opening.open_file(self._session, value, example=True))
            case "recover" if isinstance(value.document, Plan):
                self._show_plan(self._session.restore(value))
            case "recover":
                self._restore_board(value)
            case "local":
                self._show_plan(self._session.open_plan(local_plan(), None))
            case "new":
                self._show_plan(self._session.open_plan(starting_plan(), None))
            case "computer":
                self._window.go("computer")
            case "buy":
                self._window.go("build")
            case "browse":
                self._window.ask_open()

    def open(self, path: Path, *others: Path) -> None:
        """Open a plan file, a MIG file, a model's or another trainer's, with ``others`` of its run.

        A bad one leaves everything as it is.
        """
        if path.suffix in (".py", ".pt2"):
            if opening.can_be_read(self._session, path):
                code = asking.code_to_run(self._window, path.absolute())
                self._show_plan(code is not None and opening.take_code(self._session, code))
        elif path.name.endswith(drawings.SUFFIX):
            self._open_board(path)
        elif (found := foreign.read((path, *others), self._session.plan)) is not None:
            self._open_review(found)
        elif opening.open_file(self._session, path):
            if path.name.endswith((".yaml", ".yml")):
                self._preferences.opened(path)
            self._show_plan(True)

    def _open_review(self, found: Review) -> None:
        """Open the plan of another trainer's files, where they make one, and show their review."""
        plan = found.planned.plan
        if plan is None or self._session.open_plan(plan, None, saved=False):
            screen: Any = self._window.screen_named("review")
            screen.take(found)

    def _show_plan(self, opened: bool) -> None:
        if opened:
            self._window.go("plan")

    def _open_board(self, path: Path) -> None:
        if self._read_board(path, self.may_replace_board):
            self._preferences.opened(path)

    def _read_board(self, path: Path, may: Callable[[], bool] = lambda: True) -> bool:
        """Lay out a MIG file, if that may be; one that is wrong leaves the board as it is."""
        try:
            digest = saving.digest(path)
            drawing = drawings.read(path)
            if not may():
                return False
            laid = self._lay_out(drawing)
        except UserError as error:
            self._session.noticed.emit(error.message)
            return False
        self._session.board.discard()
        self._session.board.open(laid, path.absolute(), saved=True, digest=digest)
        return True

    def _restore_board(self, recovered: Recovered[Drawing]) -> None:
        if not self.may_replace_board():
            return
        try:
            self._lay_out(recovered.document)
            if not self._session.board.restore(recovered):
                self._session.noticed.emit(Message.of("recovery.taken"))
        except UserError as error:
            self._session.noticed.emit(error.message)

    def _lay_out(self, drawing: Drawing) -> Drawing:
        screen: Any = self._window.screen_named("mig")
        laid: Drawing = screen.take(drawing)
        return laid

    # What becomes of unsaved edits

    def may_replace_plan(self) -> bool:
        """Ask about the plan's unsaved edits; False where it stays open."""
        plan = self._session.plan
        name = Message.of("ui.ask.plan", name=plan_name(plan)) if plan is not None else None
        return self._may_go(self._session.draft, name, self.save_plan)

    def may_replace_board(self) -> bool:
        """Ask about the unsaved MIG board; False where it stays open."""
        return self._may_go(self._session.board, Message.of("ui.ask.board"), self.save_board)

    def may_close(self) -> bool:
        """Ask about all that is unsaved; False where the window stays."""
        return self.may_replace_plan() and self.may_replace_board()

    def _may_go(self, draft: Draft[Any], what: Message | None, save: Callable[[], bool]) -> bool:
        if not draft.unsaved or what is None:
            return True
        answer = asking.about_edits(self._window, what)
        if answer == "save":
            return save()
        if answer == "discard":
            draft.discard()
        return answer == "discard"

    # Saving

    def save_plan(self) -> bool:
        """Save the plan where it came from; False where it is not saved."""
        path = self._session.path
        if path is None:
            return self.save_plan_as()
        may = self._may_overwrite(self._session.draft, self._session.reload)
        return may and self._save_plan_to(path)

    def save_plan_as(self) -> bool:
        """Ask where to, and save the plan."""
        plan = self._session.plan
        path = asking.file_to_save(self._window, plan.name) if plan is not None else None
        return path is not None and self._save_plan_to(path)

    def _save_plan_to(self, path: Path) -> bool:
        if not self._session.save(path):
            return False
        self._preferences.opened(path)
        return True

    def save_board(self) -> bool:
        """Save the MIG board, where to is asked for; False where it is not saved."""
        board = self._session.board
        path = board.path or asking.board_to_save(self._window)
        if path is None or board.value is None:
            return False
        if not self._may_overwrite(board, self._reload_board):
            return False
        try:
            saving.write(path, drawings.text_of(board.value, path.parent))
        except UserError as error:
            self._session.noticed.emit(error.message)
            return False
        board.written(board.value, path.absolute())
        self._session.noticed.emit(Message.of("ui.mig.saved", file=path.name))
        return True

    def share(self) -> None:
        """Ask where to, and write the answer as a page or a PDF."""
        plan = self._session.plan
        if plan is None or self._session.report is None:
            return
        path = asking.page_to_save(self._window, plan_name(plan))
        if path is None:
            return
        from trainwright.ui.sharing import share

        try:
            share(self._session, path)
        except UserError as error:
            self._session.noticed.emit(error.message)
        else:
            self._session.noticed.emit(Message.of("ui.share.saved", path=str(path)))

    # What others did to the file

    def look_at_files(self) -> None:
        """Ask what to do where somebody else changed an open file; say where it is gone."""
        self._look_at(self._session.draft, self._session.reload)
        self._look_at(self._session.board, self._reload_board)

    def _look_at(self, draft: Draft[Any], reload: Callable[[], bool]) -> None:
        if self._asking or draft.on_disk == "same" or draft.path is None:
            return
        if draft.on_disk == "gone":
            self._session.warned.emit(Message.of("ui.ask.gone", file=str(draft.path)))
        else:
            found = saving.digest(draft.path)
            if self._left.get(draft.path) == found:
                return
            answer = self._ask_about_file(draft, ("keep", "reload"), "reload")
            if answer == "reload" and reload():
                return
            if answer != "keep":
                self._left[draft.path] = found
        draft.take_note(decided=draft.path not in self._left)
        self._session.edited.emit()

    def _may_overwrite(self, draft: Draft[Any], reload: Callable[[], bool]) -> bool:
        """Ask before a file is overwritten that somebody else changed."""
        if draft.on_disk != "changed":
            return True
        answer = self._ask_about_file(draft, ("cancel", "reload", "overwrite"), "cancel")
        if answer == "reload":
            reload()
        return answer == "overwrite"

    def _ask_about_file(self, draft: Draft[Any], answers: tuple[str, ...], best: str) -> str:
        path = draft.path
        assert path is not None
        self._asking = True
        try:
            return asking.about_changed_file(
                self._window, path, answers, best, draft.text, lambda: _text(path)
            )
        finally:
            self._asking = False

    def _reload_board(self) -> bool:
        path = self._session.board.path
        return path is not None and self._read_board(path)


def _text(path: Path) -> str:
    """Return a file's text to compare with; where it cannot be read, why."""
    try:
        return reading.text(path, yamltext.MAX_BYTES)
    except UserError as error:
        return str(error)
