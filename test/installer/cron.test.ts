/**
 * Compares the script's cron parser with a second implementation on random schedules: both reject the same ones, and
 * the systemd calendar matches the same minutes of the same days. Many schedules share one shell, so that thousands can
 * run.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { withInstallerFunctions } from '../harness/client/installer.ts';
import { fuzzRuns } from '../harness/fuzz-runs.ts';

const script = withInstallerFunctions(
  { after },
  `
while IFS= read -r schedule; do
  if calendar=$(cron_to_calendar "$schedule"); then printf 'ok\\n%s\\n.\\n' "$calendar"; else printf 'no\\n%s\\n.\\n' "$calendar"; fi
done`,
);

/** The script's calendar lines for each schedule, or undefined if it rejects one, for which it must give a reason. */
function readByScript(schedules: readonly string[]): (readonly string[] | undefined)[] {
  const output = execFileSync('sh', [script], {
    input: schedules.map((schedule) => `${schedule}\n`).join(''),
    env: { PATH: process.env.PATH },
    timeout: 300_000,
    encoding: 'utf8',
  });
  return output
    .split('\n.\n')
    .slice(0, -1)
    .map((answer) => {
      const [verdict, ...lines] = answer.split('\n');
      assert(lines.length > 0 && lines.every((line) => line !== ''), `${verdict} without a reason`);
      return verdict === 'ok' ? lines : undefined;
    });
}

type Schedule = {
  readonly minutes: Set<number>;
  readonly hours: Set<number>;
  readonly fits: (day: Date) => boolean;
};

const months = ['', 'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const macros: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** The schedule by the rules of crontab(5); undefined if it is invalid or never matches a day. */
function readByUs(schedule: string): Schedule | undefined {
  const macro = /^@\S+(?=[ \t]*$)/.exec(schedule)?.[0];
  const text = macro === undefined ? schedule : Object.hasOwn(macros, macro) ? macros[macro] : undefined;
  const fields = text?.split(/[ \t]+/).filter((field) => field !== '') ?? [];
  if (fields.length !== 5) return undefined;
  const [minute = '', hour = '', date = '', month = '', weekday = ''] = fields;
  const minutes = setOf(minute, 0, 59, []);
  const hours = setOf(hour, 0, 23, []);
  const dates = setOf(date, 1, 31, []);
  const inMonths = setOf(month, 1, 12, months);
  const onDays = setOf(weekday, 0, 7, weekdays);
  if (!minutes || !hours || !dates || !inMonths || !onDays) return undefined;
  if (onDays.has(7)) onDays.add(0);
  const isEither = !date.startsWith('*') && !weekday.startsWith('*');
  const fits = (day: Date) => {
    const [byDate, byDay] = [dates.has(day.getUTCDate()), onDays.has(day.getUTCDay())];
    return inMonths.has(day.getUTCMonth() + 1) && (isEither ? byDate || byDay : byDate && byDay);
  };
  // A leap year has every possible day.
  const isEver = days.some((day) => inMonths.has(day.getUTCMonth() + 1) && dates.has(day.getUTCDate()));
  return isEither || isEver ? { minutes, hours, fits } : undefined;
}

function setOf(field: string, low: number, high: number, names: readonly string[]): Set<number> | undefined {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [, from, to, step] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(part) ?? [];
    if (from === undefined || (from === '*' && to !== undefined)) return undefined;
    if (step !== undefined && from !== '*' && to === undefined) return undefined;
    const first = from === '*' ? low : numberOf(from, names);
    const last = from === '*' ? high : numberOf(to ?? from, names);
    const by = BigInt(step ?? '1') > 100n ? 100 : Number(step ?? '1');
    if (first === undefined || last === undefined || first < low || last > high || first > last || by < 1)
      return undefined;
    // Count Sunday, which is both 0 and 7, only once.
    const end = from === '*' && high === 7 ? 6 : last;
    for (let value = first; value <= end; value += by) values.add(value);
  }
  return values;
}

function numberOf(text: string, names: readonly string[]): number | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const at = text === '' ? -1 : names.indexOf(text.toLowerCase());
  return at === -1 ? undefined : at;
}

const days = Array.from({ length: 366 }, (_, at) => new Date(Date.UTC(2028, 0, 1 + at)));

/** A line of systemd.time(7) as the script writes them: weekdays, months, dates, hours and minutes. */
function readCalendar(line: string): Schedule {
  const form =
    /^(?:([A-Z][a-z]{2}(?:,[A-Z][a-z]{2})*) )?\*-(\*|[\d,]+)-(\*|[\d,]+) (\*|[\d,]+):(\*|[\d,]+):00$/;
  const [, on = '*', inMonths = '', dates = '', hours = '', minutes = ''] = form.exec(line) ?? [];
  assert.notEqual(minutes, '', `${line} is not as expected`);
  const numbers = (text: string, most: number) =>
    new Set(text === '*' ? Array.from({ length: most + 1 }, (_, at) => at) : text.split(',').map(Number));
  const byDay = on === '*' ? undefined : new Set(on.toLowerCase().split(','));
  const fits = (day: Date) =>
    (byDay?.has(weekdays[day.getUTCDay()] ?? '') ?? true) &&
    numbers(inMonths, 12).has(day.getUTCMonth() + 1) &&
    numbers(dates, 31).has(day.getUTCDate());
  return { minutes: numbers(minutes, 59), hours: numbers(hours, 23), fits };
}

function assertSame(schedule: string, lines: readonly string[] | undefined): void {
  const ours = readByUs(schedule);
  assert.equal(
    lines !== undefined,
    ours !== undefined,
    `"${schedule}" is ${ours ? 'a' : 'no'} schedule: ${lines}`,
  );
  if (lines === undefined || ours === undefined) return;
  const calendars = lines.map(readCalendar);
  for (const { minutes, hours } of calendars) {
    assert.deepEqual([minutes, hours], [sorted(ours.minutes), sorted(ours.hours)], schedule);
  }
  for (const day of days) {
    const isThen = calendars.some(({ fits }) => fits(day));
    assert.equal(isThen, ours.fits(day), `"${schedule}" on ${day.toISOString()}: ${lines.join(' | ')}`);
  }
}

function sorted(values: ReadonlySet<number>): Set<number> {
  return new Set([...values].toSorted((a, b) => a - b));
}

/** A part of a field with values from `low` to `high`, mostly valid. */
function part(low: number, high: number, names: readonly string[]): fc.Arbitrary<string> {
  const named = names.filter((name) => name !== '');
  const value = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: low, max: high }).map(String) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        String(high + 1),
        '0',
        '00',
        '007',
        '-1',
        '7',
        '',
        'x',
        String(low).padStart(2, '0'),
      ),
    },
    {
      weight: named.length > 0 ? 2 : 0,
      arbitrary: fc.constantFrom(...named, 'MON', 'Jan', 'jana', 'sunmon', 'ebm'),
    },
  );
  const range = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(value, value).map(([a, b]) => (Number(a) > Number(b) ? `${b}-${a}` : `${a}-${b}`)),
    },
    { weight: 1, arbitrary: fc.tuple(value, value).map((both) => both.join('-')) },
  );
  const step = fc.constantFrom(
    '',
    '',
    '',
    '/1',
    '/2',
    '/5',
    '/7',
    '/15',
    '/99',
    '/0',
    '/',
    '/x',
    '/00002',
    '/99999999999999999999',
  );
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant('*') },
    { weight: 4, arbitrary: value },
    { weight: 3, arbitrary: fc.tuple(fc.oneof(fc.constant('*'), range), step).map((both) => both.join('')) },
  );
}

function field(low: number, high: number, names: readonly string[] = []): fc.Arbitrary<string> {
  const one = part(low, high, names);
  return fc.oneof(
    { weight: 4, arbitrary: one },
    { weight: 1, arbitrary: fc.array(one, { minLength: 1, maxLength: 4 }).map((all) => all.join(',')) },
  );
}

const five = fc
  .tuple(
    field(0, 59),
    field(0, 23),
    field(1, 31),
    field(1, 12, months),
    field(0, 7, weekdays),
    fc.constantFrom(' ', ' ', '  ', '\t'),
  )
  .map(([minute, hour, date, month, weekday, gap]) => [minute, hour, date, month, weekday].join(gap));
const odd = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '@daily',
    '@daily ',
    '@weekly x',
    '@reboot',
    '@DAILY',
    ' @hourly',
    '@',
    '@yearly',
    '@midnight',
    '* * * *',
    '* * * * * *',
  ),
  fc.constantFrom(
    '*,* * * * *',
    '1,,2 * * * *',
    '*-5 * * * *',
    '5-* * * * *',
    '** * * * *',
    '*/*/2 * * * *',
    '%s * * * *',
    '$(id) * * * *',
    '`id` * * * *',
    '\\ * * * *',
  ),
  fc.string({ unit: fc.constantFrom(...'*/-, 0123456789@janmo\\$"\'`;&|%[]'), maxLength: 20 }),
);
const schedules = fc.array(fc.oneof({ weight: 6, arbitrary: five }, { weight: 1, arbitrary: odd }), {
  minLength: 50,
  maxLength: 50,
});

test('both implementations reject a schedule or agree on its days, hours and minutes', () => {
  let read = 0;
  const property = fc.property(schedules, (all) => {
    const answers = readByScript(all);
    assert.equal(answers.length, all.length);
    for (const [index, schedule] of all.entries()) assertSame(schedule, answers[index]);
    read += answers.filter((lines) => lines !== undefined).length;
  });
  fc.assert(property, { ...fuzzRuns(10), endOnFailure: true });
  assert(read > 50, `only ${read} were schedules`);
});

test('every macro and every name of a day or month is converted correctly', () => {
  const named = [
    ...months.slice(1).map((name) => `0 0 1 ${name} *`),
    ...weekdays.map((name) => `0 0 * * ${name}`),
  ];
  const all = [...Object.keys(macros), ...named, ...named.map((schedule) => schedule.toUpperCase())];
  const answers = readByScript(all);
  for (const [index, schedule] of all.entries()) {
    assert.notEqual(answers[index], undefined, schedule);
    assertSame(schedule, answers[index]);
  }
});
