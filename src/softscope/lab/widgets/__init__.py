"""The interactive pictures as anywidgets, for the lessons and for Jupyter.

>>> from softscope.lab.widgets import SoftmaxWidget
>>> SoftmaxWidget(logits=[1.0, 2.0, 3.0], lang="zh").temperature
1.0
"""

from softscope.lab.widgets.pictures import AttentionWidget, JacobianWidget, ScalingWidget, SoftmaxWidget, StepsWidget

__all__ = ["AttentionWidget", "JacobianWidget", "ScalingWidget", "SoftmaxWidget", "StepsWidget"]
