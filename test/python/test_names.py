"""Names that public programs use of TensorFlow are there (tf_names.txt); what names_referee.py cannot show."""
import os
import subprocess
import sys

import pytest

import stoker.tf as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def test_every_name_is_there():
    done = subprocess.run([sys.executable, "-m", "stoker", "check", "--names", os.path.join(HERE, "tf_names.txt")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "570 of 570" in done.stdout


def test_a_name_that_is_not_there_is_told(tmp_path):
    (tmp_path / "names.txt").write_text("# some\ntf.add\ntf.nope\nkeras.layers.Dense\n")
    done = subprocess.run([sys.executable, "-m", "stoker", "check", "--names", str(tmp_path / "names.txt")], capture_output=True, text=True)
    assert done.returncode == 1 and "tf.nope is missing" in done.stdout and "2 of 3" in done.stdout


def test_samplers_draw_what_they_should():
    labels = tf.constant([[0]], tf.int64)
    drawn = tf.random.log_uniform_candidate_sampler(labels, 1, 4, True, 4)
    assert sorted(drawn.sampled_candidates.numpy().tolist()) == [0, 1, 2, 3]
    shard = tf.random.fixed_unigram_candidate_sampler(labels, 1, 50, False, 4, unigrams=[1.0] * 4, num_shards=2, shard=1)
    assert set(shard.sampled_candidates.numpy().tolist()) == {1, 3}
    with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
        tf.random.uniform_candidate_sampler(labels, 1, 5, True, 4)
    loss = tf.function(lambda w, y: tf.nn.nce_loss(w, tf.zeros([4]), y, tf.ones([1, 3]), 2, 4))
    assert loss(tf.ones([4, 3]), labels).shape == [1] and "draws" in loss.why_eager()


def test_sparse_and_ragged_arguments_are_told_apart():
    """Values with other places or rows are other arguments, although the sizes are the same."""
    total = tf.function(lambda s: tf.sparse.to_dense(s))
    one = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    two = tf.SparseTensor([[1, 0]], [1.0], [2, 2])
    assert total(one).numpy().tolist() == [[0, 1], [0, 0]] and total(two).numpy().tolist() == [[0, 0], [1, 0]]
    rows = tf.function(lambda r: r.to_tensor())
    assert rows(tf.ragged.constant([[[1], [2, 3]]])).shape == [1, 2, 2]
    assert rows(tf.ragged.constant([[[1, 2], [3]]])).numpy().tolist() == [[[1, 2], [3, 0]]]
