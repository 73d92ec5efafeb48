"""The user's line behind a frame, cheaply enough to be asked at each call: each code object is looked at once."""

from types import CodeType, FrameType

from ta_runtime import places

Line = tuple[str, int]

NOWHERE: Line = ("", 0)


class Lines:
    """Remembers which code is the user's, and the lines of its calls."""

    def __init__(self) -> None:
        # by id, as equal code of two files is equal and a code object hashes all that it holds; None: a library's
        self._known: dict[int, tuple[CodeType, dict[int, Line] | None]] = {}

    def behind(self, frame: FrameType | None) -> Line:
        """The file and line of the innermost frame that runs the user's code, from this one outwards."""
        known = self._known
        while frame is not None:
            code = frame.f_code
            entry = known.get(id(code)) or self._learn(code)
            if (lines := entry[1]) is not None:
                return lines.get(frame.f_lasti) or self._line(frame, lines)
            frame = frame.f_back
        return NOWHERE

    def _learn(self, code: CodeType) -> tuple[CodeType, dict[int, Line] | None]:
        entry = self._known[id(code)] = (code, None if places.is_library(code.co_filename) else {})
        return entry

    def _line(self, frame: FrameType, lines: dict[int, Line]) -> Line:
        place = places.of_frame(frame)
        line = lines[frame.f_lasti] = (place.path, place.line)
        return line
