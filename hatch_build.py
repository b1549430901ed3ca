"""What the package's metadata take from the repository's URL, which pyproject.toml has once.

With it: the project's links, and a README whose links lead into the repository, so that they also
work on the page of a package index. Without it: no links, and a README without them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>[^)\s]+)\)\n*")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<path>[^)\s]+)\)")


class RepositoryHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        repository = self.config.get("repository", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readable_elsewhere(text, repository),
        }
        metadata["urls"] = project_urls(repository)


def project_urls(repository: str) -> dict[str, str]:
    if not repository:
        return {}
    return {
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changes": f"{repository}/blob/HEAD/CHANGELOG.md",
    }


def readable_elsewhere(text: str, repository: str) -> str:
    """Return a README whose relative links lead into the repository, or are left out.

    Examples
    --------
    >>> readable_elsewhere("See [the guide](docs/guide.md).", "https://git.example/treelens")
    'See [the guide](https://git.example/treelens/blob/HEAD/docs/guide.md).'
    >>> readable_elsewhere("See [the guide](docs/guide.md).", "")
    'See the guide.'
    """

    def image(found: re.Match[str]) -> str:
        if _is_elsewhere(found["path"]):
            return found[0]
        if not repository:
            return ""
        place = f"({repository}/raw/HEAD/{found['path']})"
        return found[0].replace(f"({found['path']})", place)

    def link(found: re.Match[str]) -> str:
        if _is_elsewhere(found["path"]):
            return found[0]
        if not repository:
            return found["text"]
        return f"[{found['text']}]({repository}/blob/HEAD/{found['path']})"

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(link, _IMAGE.sub(image, part)) for part in parts[::2]]
    return "".join(parts)


def _is_elsewhere(path: str) -> bool:
    return "://" in path or path.startswith(("#", "mailto:"))
