/**
 * Computes when cron runs a job, minute by minute by the rules of crontab(5), as a reference for other implementations.
 */

const macros: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const names = ['jan feb mar apr may jun jul aug sep oct nov dec', 'sun mon tue wed thu fri sat'].map((list) =>
  list.split(' '),
);

/** The first `count` times after `base`, both as `YYYY-MM-DD HH:MM:SS` in UTC. */
export function cronMinutes(schedule: string, base: string, count: number): string[] {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = (macros[schedule] ?? schedule).split(
    ' ',
  );
  const found: string[] = [];
  const dayByDay = !/^[*]/.test(day) && !/^[*]/.test(weekday);
  for (let at = Date.parse(`${base.replace(' ', 'T')}Z`) + 60_000; found.length < count; ) {
    const date = new Date(at);
    const days = [
      matches(day, date.getUTCDate(), 1, 31),
      matches(weekday, date.getUTCDay(), 0, 7) || (date.getUTCDay() === 0 && matches(weekday, 7, 0, 7)),
    ];
    const isDay =
      matches(month, date.getUTCMonth() + 1, 1, 12) && (dayByDay ? days.some(Boolean) : days.every(Boolean));
    if (!isDay) {
      at = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 1);
      continue;
    }
    if (matches(hour, date.getUTCHours(), 0, 23) && matches(minute, date.getUTCMinutes(), 0, 59)) {
      found.push(date.toISOString().slice(0, 19).replace('T', ' '));
    }
    at += 60_000;
  }
  return found;
}

function matches(field: string, value: number, low: number, high: number): boolean {
  return field.split(',').some((part) => {
    const [range = '', step = '1'] = part.split('/');
    const [from, to] = range === '*' ? [low, high] : range.split('-').map(number);
    const last = to ?? from ?? low;
    return value >= (from ?? low) && value <= last && (value - (from ?? low)) % Number(step) === 0;
  });
}

function number(text: string): number {
  const [month, weekday] = names.map((list) => list.indexOf(text));
  if (month !== undefined && month >= 0) return month + 1;
  return weekday !== undefined && weekday >= 0 ? weekday : Number(text);
}
