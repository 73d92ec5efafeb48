"""36 shapes of secrets in variables and 26 on a command line, made at random when a test runs: what a run must not keep.

Nothing here is a secret, and no part of one stands in this file, so that no scanner takes it for a leak.
"""

import random
import re
import string

LETTERS = string.ascii_letters + string.digits
PEM = f"-----BEGIN {'PRIVATE'} KEY-----"

UNTOLD = {"--hash"}
"""What neither a name nor a shape tells: forty hexadecimal digits of an option `--hash` are a hash. They are kept."""
MOSTLY = {"NEPTUNE", "COMET", "-p", "--auth", "--key"}
"""What is told by the looks of its value alone, and kept where chance makes that look like words of a language."""


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def word(self, length: int, of: str = LETTERS) -> str:
        return "".join(self._random.choice(of) for _ in range(length))

    def hexadecimal(self, *lengths: int) -> str:
        return "-".join(self.word(length, string.hexdigits.lower()[:16]) for length in lengths)


def variables(seed: int) -> dict[str, str]:
    """Environment variables."""
    make = _Maker(seed)
    word, number = make.word, make.hexadecimal
    return {
        "AWS_ACCESS_KEY_ID": "AK" + "IA" + word(16, string.ascii_uppercase + string.digits),
        "AWS_SECRET_ACCESS_KEY": word(40),
        "HF_TOKEN": f"hf_{word(34)}",
        "WANDB_API_KEY": number(40),
        "DATABASE_URL": f"postgres://bob:{word(10)}@db.host/x",
        "PGPASSWORD": word(9),
        "MYSQL_PWD": word(9),
        "REDIS_URL": f"redis://:{word(9)}@h:6379/0",
        "HTTP_PROXY": f"http://u:{word(8)}@proxy:80",
        "SLACK_HOOK": f"https://hooks.slack.com/services/T{word(8)}/B{word(8)}/{word(24)}",
        "MY_PW": word(10),
        "PASS": word(10),
        "DB_PASS": word(10),
        "SMTP_LOGIN": f"bob:{word(10)}",
        "GITHUB_PAT": f"github_pat_{word(22)}_{word(59)}",
        "OPENAI": f"sk-proj-{word(48)}",
        "CURL_OPTS": f"-u bob:{word(10)}",
        "SLURM_JWT": f"eyJ{word(20)}.{word(30)}.{word(30)}",
        "GOOGLE_JSON": f'{{"private_key": "{PEM}\\n{word(60)}"}}',
        "BASIC": f"Basic {word(24)}",
        "HEADER": f"Authorization: Bearer {word(30)}",
        "AZURE_SAS": f"https://x.blob.core.windows.net/c?sv=2020&sig={word(43)}%3D",
        "S3PRE": f"https://b.s3.amazonaws.com/k?X-Amz-Signature={number(64)}",
        "MONGO": f"mongodb+srv://u:{word(8)}%40@c.mongodb.net",
        "DOCKER_CFG": f'{{"auths": {{"x": {{"auth": "{word(40)}"}}}}}}',
        "AZURE_CONN": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={word(60)}==;",
        "PIN": word(8, "123456789"),
        "NEPTUNE": f"{word(20)}==",
        "COMET": word(25),
        "UUIDKEYISH": number(8, 4, 4, 4, 12),
        "KAGGLE_JSON": f'{{"username": "bob", "key": "{number(32)}"}}',
        "GH_ENTERPRISE": f"ghs_{word(36)}",
        "STRIPE": f"sk_live_{word(24)}",
        "TELEGRAM_BOT": f"123456789:AA{word(33)}",
        "ANTH": f"sk-ant-api03-{word(60)}",
        "GITURL": f"https://{word(20)}@github.com/x/y",
    }


def options(seed: int) -> dict[str, str]:
    """Options of a command line; one that ends in `=` is written together with its value."""
    make = _Maker(seed)
    word, number = make.word, make.hexadecimal
    return {
        "--password": word(10),
        "--hf-token": f"hf_{word(34)}",
        "--wandb_key": number(40),
        "--api-key=": word(20),
        "--pw": word(10),
        "-p": word(10),
        "--db": f"postgres://bob:{word(10)}@h/x",
        "--aws-secret": word(40),
        "--secret-access-key": word(40),
        "--header": f"Authorization: Bearer {word(30)}",
        "--openai": f"sk-proj-{word(48)}",
        "--git": f"https://{word(20)}@github.com/x/y",
        "--gitpat": f"github_pat_{word(22)}_{word(59)}",
        "--sas": f"https://x.blob/c?sig={word(43)}",
        "logger.token=": word(20),
        "+wandb.api_key=": number(40),
        "--passphrase": word(12),
        "--cfg": f'{{"password": "{word(12)}"}}',
        "--credentials": word(12),
        "--user": f"bob:{word(10)}",
        "--hash": number(40),
        "PASSWORD=": word(12),
        "--auth": word(12),
        "--auth-token=": f"-{word(12)}",
        "--key": word(20),
        "--login-token": word(12),
    }


def arguments(options: dict[str, str]) -> list[str]:
    """The words of a command line."""
    return [
        word
        for name, value in options.items()
        for word in ([name + value] if name.endswith("=") else [name, value])
    ]


_OF_SHAPES = set(
    "postgres windows DefaultEndpointsProtocol AccountName AccountKey Signature amazonaws services Authorization username github"
    " mongodb private private_key 123456789".split()
)


def core(value: str) -> str:
    """The part of a value whose presence in a file is a leak: the longest word that is not of its shape."""
    return max((word for word in re.findall(r"[A-Za-z0-9]{8,}", value) if word not in _OF_SHAPES), key=len)  # type: ignore[no-any-return]
