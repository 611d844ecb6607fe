/** What watches the console's pages in all other tests, tried on pages that misbehave: or nobody would know that it sees. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violations } from '../harness/console-axe.ts';
import { visit } from '../harness/console-visit.ts';
import { startWatch } from '../harness/console-watch.ts';
import { needs } from '../harness/missing-program.ts';

const chromium = needs('chromium');

/** A script that adds an element with this attribute. */
const add = (tag: string, attribute: string, value: string) =>
  `const made = document.createElement('${tag}'); made.${attribute} = ${JSON.stringify(value)}; document.body.append(made)`;

/** What no page of the console does, where the browser says so, and what is complained about then. */
const misdeeds = [
  {
    script: `document.body.setAttribute('style', 'color: red')`,
    by: 'console',
    complaint: /style-src 'self'/,
  },
  {
    script: add('script', 'textContent', '1'),
    by: 'console',
    complaint: /script-src 'self'/,
  },
  { script: add('img', 'src', 'http://evil.localhost:9/'), by: 'console', complaint: /img-src 'self'/ },
  { script: add('iframe', 'src', '/about'), by: 'console', complaint: /frame|default-src 'none'/ },
  {
    script: `void fetch('http://evil.localhost:9/').catch(() => {})`,
    by: 'console',
    complaint: /connect-src 'self'/,
  },
  { script: `void fetch('/api/v1/nothing')`, by: 'console', complaint: /status of 404/ },
  { script: `console.warn('careful')`, by: 'console', complaint: /careful/ },
  { script: `setTimeout(() => { throw new Error('a bug') })`, by: 'pageerror', complaint: /a bug/ },
  { script: `void Promise.reject(new Error('forgotten'))`, by: 'pageerror', complaint: /forgotten/ },
  {
    script: `location.href = 'http://other.localhost:9/'`,
    by: 'requestfailed',
    complaint: /asks http:..other/,
  },
] as const;

test('whatever a page does against its policy is seen, and so is every error', chromium, async (t) => {
  const { alice, url, expectComplaint, excuse } = await visit(t);
  const { page, context, open } = await alice();
  // Some are seen twice.
  excuse(/evil\.localhost/);
  const watch = startWatch(url);
  watch.add(context);
  for (const { script, by, complaint } of misdeeds) {
    await open('/about');
    assert.doesNotMatch(watch.complaints().join('\n'), complaint, 'until now it behaves');
    const said = page.waitForEvent(by as 'console');
    await page.evaluate(`{ ${script} }`);
    await said;
    assert.match(watch.complaints().join('\n'), complaint);
    expectComplaint(complaint);
  }
});

test('a complaint that is expected and never comes is a complaint', () => {
  const watch = startWatch('http://127.0.0.1:9');
  assert.deepEqual(watch.complaints(), []);
  watch.expectComplaint(/status of 400/);
  assert.deepEqual(watch.complaints(), ['nothing was like /status of 400/']);
});

test('a field without a label, and text that nobody can read, are violations', chromium, async (t) => {
  const { alice } = await visit(t);
  const { page } = await alice();
  assert.deepEqual(await violations(page), []);
  await page.evaluate(add('input', 'type', 'text'));
  await page.evaluate(`document.querySelector('h1').style.color = 'white'`);
  const found = (await violations(page)).join('\n');
  assert.match(found, /^label: /m);
  assert.match(found, /^color-contrast: /m);
});
