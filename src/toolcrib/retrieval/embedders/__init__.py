"""Embedders beside the bundled one, each behind the `Embedder` protocol of `dense.py`.

    onnx.py                     a folder with an ONNX graph and a tokenizer
    sentence_transformers.py    a folder of that library
    hosted.py                   a service that speaks OpenAI's wire
    multilingual.py             the sentence encoder of `toolcrib[multilingual]`
    joint.py, packaged.py       several of them as one vector: the quality model and the multilingual one
    kept.py                     any of them, with its vectors of documents kept on disk

Above: `models.py` on floor 4, which reads the settings. Nothing here does. Each optional library is imported in the one
file that needs it, when an embedder is made.

Invariants
1. One text's vector does not depend on its neighbours in a batch: local models see one text at a time (I1). Quantised
   graphs scale by the largest value of a batch, and matrix products of other shapes round otherwise.
2. Nothing is ever fetched from a model hub; only `hosted.py` opens a connection, to the address it was given.
3. A model id names all that a vector depends on: the files' content, the prefixes, the cut.
"""
