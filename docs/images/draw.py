"""Draw elect80.png: the maps that `residua demo` writes, in 256 colours so that the file stays small."""

from pathlib import Path

from PIL import Image

from residua.cli.demo import run_demo


def main() -> None:
    path = Path(__file__).with_name("elect80.png")
    run_demo().picture(path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
