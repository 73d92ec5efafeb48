"""What is normal for this run: running medians, so that thresholds are the run's own."""

import math
from collections import deque
from statistics import median


class Series:
    """The last values of one number, and what is usual among them. Values that are not finite are left out."""

    def __init__(self, length: int = 200) -> None:
        self.values: deque[float] = deque(maxlen=length)
        self.count = 0
        """How many finite values came in all."""
        self._usual: tuple[int, float, float] | None = None

    def add(self, value: float) -> None:
        if math.isfinite(value):
            self.values.append(value)
            self.count += 1

    @property
    def usual(self) -> tuple[float, float]:
        """Median and median absolute deviation of the last values, at most 10 values old.

        The deviation is as it is, without the factor 1.4826 that makes it a standard deviation of normal values.

        Raises:
            ValueError: there are no values yet.
        """
        if not self.values:
            raise ValueError("an empty series has no median")
        if self._usual is None or self.count >= self._usual[0] + 10 or self.count < 20:
            middle = median(self.values)
            spread = median(abs(value - middle) for value in self.values)
            self._usual = (self.count, middle, spread)
        return self._usual[1], self._usual[2]


class History:
    """The series that a session keeps: of each optimizer its gradient norms, and the losses.

    A step's own values are added after its checks ran, so that a spike is compared with what came before it.
    """

    def __init__(self) -> None:
        self._log_norms: dict[int, Series] = {}
        self._losses: dict[int, Series] = {}

    def log_norms(self, optimizer: object) -> Series:
        """Natural logarithms of the global gradient norms of an optimizer, before clipping."""
        return self._log_norms.setdefault(id(optimizer), Series())

    def losses(self, optimizer: object) -> Series:
        """The losses that an optimizer stepped on, the mean of its micro-batches."""
        return self._losses.setdefault(id(optimizer), Series(length=2000))

    def add_norm(self, optimizer: object, norm: float | None) -> None:
        if norm is not None and norm > 0:
            self.log_norms(optimizer).add(math.log(norm))

    def add_loss(self, optimizer: object, step: int, loss: float | None) -> None:
        if loss is not None:
            self.losses(optimizer).add(loss)
