"""The language that is guessed for a text."""

from __future__ import annotations

import pytest

from synthesis.text.language import detect


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hello, how are you today?", "en"),
        ("12345", "en"),
        ("Kubernetes", "en"),
        ("Do no harm", "en"),
        ("A man, a plan, a canal: Panama!", "en"),
        ("No one. No one. No one.", "en"),
        ("今天天气很好。", "zh"),
        ("優の良品很好吃，大家都喜歡去那裡買東西。", "zh"),
        ("我用 Python 和 Django 写 code。", "zh"),
        ("The word 你好 means hello in the Chinese language.", "en"),
        ("東京都庁に行く", "ja"),
        ("これはペンです。", "ja"),
        ("안녕하세요, 반갑습니다.", "ko"),
        ("Привет, как дела?", "ru"),
        ("Der Hund und die Katze sind nicht im Haus.", "de"),
        ("Je ne sais pas si les enfants sont avec vous.", "fr"),
        ("El perro y el gato no están en la casa de los abuelos.", "es"),
        ("Il gatto non è con gli altri della casa.", "it"),
        ("In 1999 he moved to El Paso, and then to Los Angeles.", "en"),
        ("Καλημέρα σας", "el"),
        ("สวัสดีครับ", "th"),
    ],
)
def test_language_of(text: str, language: str) -> None:
    assert detect(text) == language
