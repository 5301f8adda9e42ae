"""The exported page: asked by the keyboard alone, with no request, and for everyone."""

from __future__ import annotations

import pytest

import adacos
from tests.browser.conftest import AXE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "policy.html"
    adacos.export(adacos.load(models["costs"]), path)
    return path


def test_a_consultation_by_keyboard_ends_as_in_python(exported, models, chromium) -> None:
    data = adacos.load_pima()
    row, page = data.X.iloc[0], chromium.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(exported.as_uri())
    policy = adacos.load(models["costs"])
    case = policy.consultation()
    while isinstance(step := case.next(), adacos.Acquire):
        for name in step.covariates:
            case.observe({name: float(row[name])})
            page.keyboard.type(str(float(row[name])))
            page.keyboard.press("Enter")
    assert f"({step.label})" in page.locator("#answer").inner_text()
    assert f"{step.probability:.1%}" in page.locator("#numbers").inner_text()
    page.locator("#undo").press("Enter")
    assert page.locator("#question").is_visible()
    page.locator("#unavailable").press("Enter")
    assert "available" in page.locator("#problem").inner_text()
    assert requests == [exported.as_uri()]
    page.close()


def test_the_page_is_for_everyone(exported, chromium) -> None:
    if not AXE.is_file():
        pytest.skip(f"there is no {AXE}: npm install axe-core, or name it in ADACOS_AXE")
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(exported.as_uri())
    page.add_script_tag(path=AXE)
    assert page.evaluate("axe.run().then(found => found.violations.map(one => one.id))") == []
    context.close()


def test_a_protocol_continues_without_a_value(chromium, tmp_path) -> None:
    data = adacos.load_pima(zeros="missing")
    costs = adacos.Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
    text = "if Glucose >= 126: 1\nunavailable:\n    if BMI > 30: 1\n    else: 0\nelse: 0"
    policy = adacos.ProtocolClassifier(costs, protocol=text).fit(data.X, data.y)
    adacos.export(policy, tmp_path / "policy.html")
    page = chromium.new_page()
    errors: list[object] = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto((tmp_path / "policy.html").as_uri())
    case = policy.consultation()
    page.locator("#unavailable").press("Enter")
    case.unavailable("Glucose")
    page.keyboard.type("27.5")
    page.keyboard.press("Enter")
    step = case.observe({"BMI": 27.5}).next()
    assert page.locator("#answer").inner_text() == f"Result: {step.label}"
    assert f"{step.probability:.1%}" in page.locator("#numbers").inner_text()
    assert "not available" in page.locator("#values").inner_text()
    assert errors == []
    page.close()
