"""Where policies start, and which texts are too deep to parse."""

from __future__ import annotations

from toolcrib.policy.statements import MAX_BRACKETS, MAX_OPERATORS, statements


def test_each_policy_is_found_at_its_line() -> None:
    text = '// one; two\n\n@id("a")\npermit (principal, action, resource);  // ";"\nforbid (principal);\n'
    first, second = statements(text)
    assert (first.line, first.text) == (3, '@id("a")\npermit (principal, action, resource);')
    assert (second.line, second.text) == (5, "forbid (principal);")


def test_signs_in_strings_and_comments_count_for_nothing() -> None:
    (part,) = statements('permit (principal, action, resource) when { "a;b//\\"((&&" == "c" // ((( && ;\n};')
    assert (part.n_brackets, part.n_operators) == (1, 0)


def test_what_is_left_unfinished_is_a_policy_too() -> None:
    parts = statements("permit (principal, action, resource);\n  // note\n forbid (")
    assert [(part.line, part.text) for part in parts[1:]] == [(3, "forbid (")]


def test_blank_text_holds_no_policy() -> None:
    assert statements("  // nothing\n\n") == ()


def test_nesting_and_length_are_bounded_exactly() -> None:
    def text(n_brackets: int, n_operators: int) -> str:
        return "(" * n_brackets + "1" + "+1" * n_operators + ")" * n_brackets + ";"

    assert not statements(text(MAX_BRACKETS, MAX_OPERATORS))[0].too_deep
    assert statements(text(MAX_BRACKETS + 1, 0))[0].too_deep
    assert statements(text(0, MAX_OPERATORS + 1))[0].too_deep
