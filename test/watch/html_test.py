#!/usr/bin/env python3
"""A report in a real browser: wide and light, narrow and dark. Skipped (77) without Chromium.

    test/watch/html_test.py build/stoker [folder for the pictures]
"""
import os
import shutil
import subprocess
import sys
import tempfile

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def main():
    if not BROWSER:
        print("no chromium: skipped")
        return 77
    stoker = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        keep = sys.argv[2] if len(sys.argv) > 2 else folder
        page = os.path.join(folder, "report.html")
        subprocess.run([stoker, "demo", folder, "--epochs", "1", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([stoker, "doctor", f"{folder}/model.json", f"{folder}/shapes.npz", "--seconds", "3",
                        "--html", page], check=True, stdout=subprocess.DEVNULL)
        for name, width, scheme in (("wide", 1000, 1), ("narrow", 500, 0)):
            picture = os.path.join(keep, f"{name}.png")
            subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                            f"--user-data-dir={folder}/profile", f"--window-size={width},2800",
                            f"--blink-settings=preferredColorScheme={scheme}",
                            f"--screenshot={picture}", f"file://{page}"],
                           check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(picture, "rb") as file:
                data = file.read()
            # An empty page of this size is some 10 kB.
            assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 60000, (name, len(data))
    print("drawn")
    return 0


sys.exit(main())
