/** The tiles and the picture above the list of certificates in a real browser: filters, tooltips, and hiding it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { contrastViolations, violations } from '../harness/console/axe.ts';
import { type Copy, copyCertificate } from '../harness/console/many-certificates.ts';
import { overflowOf } from '../harness/console/overflow.ts';
import { type Person, rendered, visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const chromium = needs('chromium');

/** The page of certificates with one healthy certificate, `www`, and copies of it. */
async function opened(t: TestContext, copies: readonly Copy[]): Promise<Person> {
  const dataDir = tempDir(t);
  const { alice } = await visit(t, { dataDir });
  const person = await alice({ reducedMotion: 'reduce' });
  await person.createCertificates('www');
  copyCertificate(dataDir, copies);
  await person.open('/certificates');
  return person;
}

/** One or two in each state. The tenth day of `left` is never in the same week as the fiftieth. */
const everyState: readonly Copy[] = [
  { name: 'old', left: -3 },
  { name: 'old-and-failing', left: -9, error: 'refused' },
  { name: 'stuck', left: 60, error: 'refused' },
  { name: 'first-order', left: 60, error: 'refused', isPending: true },
  { name: 'soon', left: 10 },
  { name: 'off', left: 60, isDisabled: true },
  { name: 'new', left: 60, isPending: true },
];

/** Enough for a histogram: 40 healthy ones in the week of the fiftieth day, three of them failing. */
const many: readonly Copy[] = [
  ...everyState,
  ...Array.from({ length: 40 }, (_, index) => ({
    name: `host-${index}`,
    left: 50,
    ...(index < 3 && { error: 'refused' }),
  })),
];

const tile = (page: Page, name: string | RegExp) =>
  page.getByRole('group', { name: 'Certificates by state' }).getByRole('button', { name });
const weeks = (page: Page) => page.getByRole('toolbar', { name: 'Expiries per week' }).getByRole('button');
const rowNames = (page: Page) =>
  page.getByRole('table', { name: 'Certificates' }).locator('tbody th a:first-child').allInnerTexts();
const queryOf = (page: Page) => new URL(page.url()).search;

test('each tile counts the certificates in a state, and filters the list to them', chromium, async (t) => {
  const { page, open } = await opened(t, everyState);
  await tile(page, 'Healthy 1').waitFor();
  const texts = await page
    .getByRole('group', { name: 'Certificates by state' })
    .getByRole('button')
    .allInnerTexts();
  assert.deepEqual(
    texts.map((text) => text.replaceAll(/\s+/g, ' ')),
    ['Expired 2', 'Failing 2', 'Expiring soon 1', 'Healthy 1', 'Inactive 2'],
  );
  for (const [name, group, names] of [
    ['Expired', 'expired', ['old-and-failing', 'old']],
    ['Failing', 'failing', ['first-order', 'stuck']],
    ['Expiring soon', 'expiring', ['soon']],
    ['Healthy', 'healthy', ['www']],
    ['Inactive', 'inactive', ['off', 'new']],
  ] as const) {
    await tile(page, new RegExp(`^${name}`)).click();
    await tile(page, new RegExp(`^${name}`))
      .and(page.locator('[aria-pressed="true"]'))
      .waitFor();
    await page.getByText(`${names.length} of 8 certificates match.`).waitFor();
    assert.equal(queryOf(page), `?group=${group}`);
    assert.deepEqual(await rowNames(page), names);
    assert.equal(await page.locator('.tile[aria-pressed="true"]').count(), 1);
  }
  await page.reload();
  await page.getByText('2 of 8 certificates match.').waitFor();
  await tile(page, /^Inactive/).click();
  await page.getByText('certificates match.').waitFor({ state: 'detached' });
  assert.equal(queryOf(page), '');
  await tile(page, /^Failing/).click();
  await page.getByLabel('Status').selectOption('expired');
  await page.getByText('2 of 8 certificates match.').waitFor();
  assert.equal(queryOf(page), '?status=expired', 'a status replaces the tile');
  await open('/certificates?group=nothing&week=nothing');
  await tile(page, 'Healthy 1').waitFor();
  assert.equal((await rowNames(page)).length, 8, 'unknown values filter nothing');
});

test('a vault without certificates has neither tiles nor a picture', chromium, async (t) => {
  const { alice } = await visit(t);
  const { page } = await alice();
  await page.getByRole('heading', { name: 'No certificates yet' }).waitFor();
  assert.equal(await page.locator('.tile, .picture').count(), 0);
});

test(
  'the picture of many certificates has a button for each week with expiries, which filters the list by keyboard',
  chromium,
  async (t) => {
    const { page } = await opened(t, many);
    const week = page.getByRole('button', { name: /^Week of .*: 40 certificates, 3 failing$/ });
    await week.waitFor();
    assert.equal(await weeks(page).first().getAttribute('aria-label'), 'Expired: 2 certificates');
    await weeks(page).first().focus();
    await page.keyboard.press('ArrowRight');
    await page
      .getByRole('button', { name: /^Week of .*: 1 certificate, 1 expiring soon$/ })
      .and(page.locator(':focus'))
      .waitFor();
    await page.keyboard.press('ArrowRight');
    await week.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('40 of 48 certificates match.').waitFor();
    assert.match(queryOf(page), /^\?week=\d{4}-\d\d-\d\d$/);
    assert.equal(await week.getAttribute('aria-pressed'), 'true');
    await tile(page, /^Failing/).click();
    await page.getByText('3 of 48 certificates match.').waitFor();
    await page.reload();
    await page.getByText('3 of 48 certificates match.').waitFor();
    assert.equal(await weeks(page).and(page.locator('[tabindex="0"]')).count(), 1);
    await page.getByRole('button', { name: /^Expiry: Week of .*, remove filter$/ }).click();
    await page.getByText('5 of 48 certificates match.').waitFor();
    assert.equal(queryOf(page), '?group=failing');
    await weeks(page).first().click();
    await page.getByRole('heading', { name: 'No matching certificates' }).waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByText('certificates match.').waitFor({ state: 'detached' });
    assert.equal(queryOf(page), '');
    await weeks(page).first().click();
    await page.getByText('2 of 48 certificates match.').waitFor();
    await weeks(page).first().click();
    await page.getByText('certificates match.').waitFor({ state: 'detached' });
    assert.equal(queryOf(page), '');
  },
);

test(
  'the picture is hidden and shown with a button, and stays hidden after a reload',
  chromium,
  async (t) => {
    const { page } = await opened(t, everyState);
    const picture = page.getByRole('img', { name: /^Lifetimes of 6 certificates/ });
    await picture.waitFor();
    await page.getByRole('button', { name: 'Hide picture' }).click();
    await picture.waitFor({ state: 'detached' });
    const show = page.getByRole('button', { name: 'Show picture' });
    await show.and(page.locator(':focus')).waitFor();
    await page.reload();
    await show.waitFor();
    assert.equal(await picture.count(), 0);
    await show.click();
    await picture.waitFor();
    await page.reload();
    await picture.waitFor();
  },
);

test('the picture can be hidden if the browser blocks storage', chromium, async (t) => {
  const { page, context } = await opened(t, everyState);
  await context.addInitScript(`
    const block = (name) => {
      const real = Storage.prototype[name];
      Storage.prototype[name] = function (key, ...rest) {
        if (key === 'vault-picture') throw new DOMException('blocked', 'SecurityError');
        return real.call(this, key, ...rest);
      };
    };
    for (const name of ['getItem', 'setItem', 'removeItem']) block(name);`);
  await page.reload();
  await page.getByRole('button', { name: 'Hide picture' }).click();
  await page.getByRole('button', { name: 'Show picture' }).click();
  await page.getByRole('img', { name: /^Lifetimes of/ }).waitFor();
});

test(
  'a tooltip appears on keyboard focus and on hover, stays under the pointer, and disappears with Escape',
  chromium,
  async (t) => {
    const { page } = await opened(t, everyState);
    const tooltip = page.getByRole('tooltip');
    const gone = () => tooltip.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Hide picture' }).focus();
    await page.keyboard.press('Tab');
    const names = page.locator('.timeline-names a');
    await names.first().and(page.locator(':focus')).waitFor();
    await tooltip.filter({ hasText: /^old-and-failing: .* to / }).waitFor();
    assert.match((await names.first().getAttribute('aria-description')) ?? '', / to /);
    await page.keyboard.press('Escape');
    await gone();
    await page.keyboard.press('Tab');
    await tooltip.filter({ hasText: /^old: / }).waitFor();
    await page.getByLabel('Search').focus();
    await gone();

    await page.locator('.bar-good .bar-full').hover();
    await tooltip.filter({ hasText: /^www: .*, renewal / }).waitFor();
    await tooltip.hover();
    await rendered(page);
    assert.equal(await tooltip.count(), 1);
    await page.keyboard.press('Escape');
    await gone();
    await page.locator('.bar-good .bar-full').hover();
    await tooltip.waitFor();
    await page.getByLabel('Search').hover();
    await gone();
    await tile(page, /^Failing/).hover();
    await tooltip.filter({ hasText: 'The last renewal or first order failed; not expired' }).waitFor();
  },
);

test(
  'the histogram is accessible with a tooltip and filters, at most 240 pixels high, and no wider than the page',
  chromium,
  async (t) => {
    const { page } = await opened(t, many);
    await weeks(page).first().waitFor();
    for (const [width, colorScheme] of [
      [1920, 'light'],
      [1280, 'dark'],
      [768, 'light'],
      [360, 'dark'],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await rendered(page);
      await weeks(page).last().focus();
      await page.keyboard.press('ArrowLeft');
      await page.keyboard.press('Enter');
      await page.getByRole('tooltip').waitFor();
      assert.ok((await overflowOf(page)) <= 0, `overflow at ${width}`);
      assert.deepEqual(await violations(page), [], `at ${width}`);
      const height = Number(await page.evaluate(`document.querySelector('.picture').offsetHeight`));
      assert.ok(height <= 240, `${height} pixels high at ${width}`);
      await page.emulateMedia({ colorScheme: colorScheme === 'dark' ? 'light' : 'dark' });
      assert.deepEqual(await contrastViolations(page), [], `at ${width}`);
    }
  },
);
