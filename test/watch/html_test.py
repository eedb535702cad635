#!/usr/bin/env python3
"""A report in a real browser: wide and light, narrow and dark, and no wider than a phone. Skipped (77) without Chromium.

    test/watch/html_test.py build/stoker [folder for the pictures [seconds to measure]]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def draw(page, picture, width, scheme):
    """The bytes of the picture; none when the browser failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        try:
            subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                            f"--user-data-dir={profile}", f"--window-size={width},2800",
                            f"--blink-settings=preferredColorScheme={scheme}",
                            f"--screenshot={picture}", f"file://{page}"],
                           check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(picture, "rb") as file:
                return file.read()
        except (subprocess.SubprocessError, OSError):
            return b""


def phone_width(page, folder):
    """How wide the page gets in a frame of 360 pixels; windows of the browser itself are never that narrow."""
    frame = os.path.join(folder, "frame.html")
    with open(frame, "w") as file:
        file.write(f"""<iframe src="file://{page}" style="width:360px;height:800px;border:0"
            onload="document.title = 'width ' + this.contentDocument.documentElement.scrollWidth"></iframe>""")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        try:
            done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                   "--allow-file-access-from-files", f"--user-data-dir={profile}", "--dump-dom", f"file://{frame}"],
                                  check=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except (subprocess.SubprocessError, OSError):
            return None
    found = re.search(r"<title>width (\d+)</title>", done.stdout)
    return int(found.group(1)) if found else None


def good(data):  # an empty page of this size is some 10 kB
    return data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 60000


def main():
    if not BROWSER:
        print("no chromium: skipped")
        return 77
    stoker = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        keep = sys.argv[2] if len(sys.argv) > 2 else folder
        seconds = sys.argv[3] if len(sys.argv) > 3 else "3"
        page = os.path.join(folder, "report.html")
        subprocess.run([stoker, "demo", folder, "--epochs", "1", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([stoker, "doctor", f"{folder}/model.json", f"{folder}/shapes.npz", "--seconds", seconds,
                        "--html", page], check=True, stdout=subprocess.DEVNULL)
        for name, width, scheme in (("wide", 1000, 1), ("narrow", 500, 0)):
            picture = os.path.join(keep, f"{name}.png")
            tries = [draw(page, picture, width, scheme)]
            while not good(tries[-1]) and len(tries) < 3:  # on a busy machine the browser may give up
                tries.append(draw(page, picture, width, scheme))
            assert good(tries[-1]), (name, [len(data) for data in tries])
        widths = [phone_width(page, folder)]
        while widths[-1] is None and len(widths) < 3:
            widths.append(phone_width(page, folder))
        assert widths[-1] == 360, widths
    print("drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
