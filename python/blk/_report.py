"""What Kernel.explain() returns: a text that a notebook shows as it is laid out."""
import html


class Report(str):
    __slots__ = ()

    def _repr_html_(self):
        return f"<pre>{html.escape(self)}</pre>"
