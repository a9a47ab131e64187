"""The pictures to play with, as anywidgets: in the lessons, and in Jupyter too.

>>> from softscope.lab.widgets import SoftmaxWidget
>>> SoftmaxWidget(logits=[1.0, 2.0, 3.0], lang="zh").temperature
1.0
"""

from softscope.lab.widgets.pictures import AttentionWidget, JacobianWidget, ScalingWidget, SoftmaxWidget

__all__ = ["AttentionWidget", "JacobianWidget", "ScalingWidget", "SoftmaxWidget"]
