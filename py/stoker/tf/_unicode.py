"""tf.strings functions that need to know characters: places of characters in bytes, and the script that a character belongs to."""
import unicodedata

import numpy as np

from stoker.tf import strings
from stoker.tf._base import int32, int64, tensor
from stoker.tf._ragged import RaggedTensor


def _numbered(text):
    found, number = {}, -1
    for word in text.split():
        name, _, given = word.partition("=")
        number = found[name] = int(given) if given else number + 1
    return found


# Numbers of scripts as ICU counts them; the name of a character begins with one or two words for its script. Scripts of the first plane only.
_SCRIPTS = _numbered(
    "COMMON INHERITED ARABIC ARMENIAN BENGALI BOPOMOFO CHEROKEE COPTIC CYRILLIC DESERET DEVANAGARI ETHIOPIC GEORGIAN GOTHIC GREEK GUJARATI "
    "GURMUKHI HAN HANGUL HEBREW HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MONGOLIAN MYANMAR OGHAM OLD-ITALIC ORIYA RUNIC SINHALA "
    "SYRIAC TAMIL TELUGU THAANA THAI TIBETAN CANADIAN YI TAGALOG HANUNOO BUHID TAGBANWA BRAILLE CYPRIOT LIMBU LINEAR-B OSMANYA SHAVIAN TAI-LE "
    "UGARITIC BUGINESE=55 GLAGOLITIC KHAROSHTHI SYLOTI NEW TIFINAGH OLD-PERSIAN BALINESE BATAK CHAM=66 OLD-HUNGARIAN=76 JAVANESE=78 KAYAH LEPCHA=82 "
    "LINEAR-A MANDAIC MEROITIC-HIEROGLYPHIC=86 NKO OLD-TURKIC OLD-PERMIC PHAGS-PA PHOENICIAN VAI=99 CARIAN=104 TAI-THAM=106 LYCIAN LYDIAN OL REJANG "
    "SAURASHTRA SUNDANESE=113 MEETEI=115 IMPERIAL AVESTAN SAMARITAN=126 TAI-VIET BAMUM=130 LISU")
_OTHERS = {"CJK": "HAN", "KANGXI": "HAN", "COMBINING": "INHERITED", "VARIATION": "INHERITED", "ROMAN": "LATIN", "FEMININE": "LATIN",
           "MASCULINE": "LATIN", "KELVIN": "LATIN", "ANGSTROM": "LATIN", "OHM": "GREEK"}
_ALONE = {0x640: 0, 0x670: 1, 0x3005: 17, 0x3007: 17, 0x951: 1, 0x952: 1, 0x3099: 1, 0x309A: 1, **dict.fromkeys(range(0x64B, 0x656), 1),
          **dict.fromkeys(range(0x2B0, 0x2B9), 25), **dict.fromkeys(range(0x2E0, 0x2E5), 25)}


def _script(code):
    if not 0 <= code < 0x110000:
        return -1
    if code in _ALONE:
        return _ALONE[code]
    letter = chr(code)
    words, kind = unicodedata.name(letter, "").split(), unicodedata.category(letter)
    if not words:
        return 103  # ICU's number for what nobody has defined
    if words[0] in ("FULLWIDTH", "HALFWIDTH", "PRESENTATION") and kind[0] == "L" or words[:2] == ["CIRCLED", "KATAKANA"]:
        words = words[1:]
    elif kind[0] not in "LMN" and words[0] not in ("BRAILLE", "KANGXI", "YI") and words[:2] != ["CJK", "RADICAL"]:
        return 0
    for name in ("-".join(words[:2]), words[0]):
        if _OTHERS.get(name, name) in _SCRIPTS:
            return _SCRIPTS[_OTHERS.get(name, name)]
    return 0


def unicode_script(input, name=None):
    """From the names of characters: letters, digits and marks. A few signs and ornaments that ICU gives to a script are common here."""
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(unicode_script(input.flat_values))
    codes = np.asarray(tensor(input).numpy())
    return tensor(np.array([_script(int(c)) for c in codes.ravel()], np.int32).reshape(codes.shape), int32)


def _with_offsets(characters, input, encoding, errors):
    def places(text):
        """Bytes before each character: what is written again is as long as what was read, where nothing was replaced."""
        made, at = [], 0
        for c in strings._decoded(text, encoding, errors):
            made.append(at)
            at += len(c.encode(encoding.lower(), "replace"))
        return made

    return characters, strings._split_each(input, places, int64)


def unicode_decode_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    return _with_offsets(strings.unicode_decode(input, input_encoding, errors), input, input_encoding, errors)


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    return _with_offsets(strings.unicode_split(input, input_encoding, errors), input, input_encoding, errors)
