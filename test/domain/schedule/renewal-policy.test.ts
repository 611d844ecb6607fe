/**
 * When to renew: relative to the lifetime, spread by a stable jitter, when the CA says so, and after failures soon,
 * then ever less often; and a clock that jumps neither stops renewals nor makes them one after the other.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { day, hour, minute } from '../../../src/base/duration.ts';
import {
  type CurrentFacts,
  isNearExpiry,
  type RenewalFacts,
  renewAt,
  turnOf,
  urgentAt,
} from '../../../src/domain/schedule/renewal-policy.ts';

const notBefore = Date.UTC(2026, 10, 21);
const year = 365 * day;

type Others = Partial<Omit<RenewalFacts, 'current'>> & { readonly current?: Partial<CurrentFacts> };

/** A version of this lifetime that was got as it began; now is half of it later. */
const facts = (lifetime: number, { current, ...others }: Others = {}): RenewalFacts => ({
  now: notBefore + lifetime / 2,
  current: { notBefore, notAfter: notBefore + lifetime, madeAt: notBefore, seed: '0A1B', ...current },
  changed: false,
  ariMoment: null,
  failedAttempts: 0,
  lastAttemptAt: null,
  retryAfter: null,
  ...others,
});

const nothingYet = (others: Omit<Others, 'current'> = {}): RenewalFacts => ({
  ...facts(day, others),
  current: null,
});

const lifetimes: readonly (readonly [name: string, lifetime: number, latestLeft: number])[] = [
  ['90 days', 90 * day, 30 * day],
  ['64 days', 64 * day, (64 / 3) * day],
  ['47 days', 47 * day, (47 / 3) * day],
  ['45 days', 45 * day, 15 * day],
  ['10 days', 10 * day, (10 / 3) * day],
  ['just below 10 days', 10 * day - 20 * minute, 5 * day - 10 * minute],
  ['160 hours', 160 * hour, 80 * hour],
  ['1 hour', hour, 30 * minute],
  ['10 years', 3650 * day, (3650 / 3) * day],
];

for (const [name, lifetime, latestLeft] of lifetimes) {
  const notAfter = notBefore + lifetime;
  const latest = notAfter - latestLeft;
  const emergency = notAfter - lifetime / 20;
  const own = renewAt(facts(lifetime));

  test(`${name}: renewed with ${(latestLeft / hour).toFixed(1)} hours left, up to a fiftieth earlier`, () => {
    fc.assert(
      fc.property(fc.string(), (seed) => {
        const at = renewAt(facts(lifetime, { current: { seed } }));
        assert(Number.isInteger(at));
        assert(at <= latest && at >= Math.floor(latest - lifetime / 50), new Date(at).toISOString());
      }),
    );
  });

  test(`${name}: never due immediately after issuance, although notBefore is slightly in the past`, () => {
    const issuedAt = notBefore + Math.min(5 * minute, lifetime / 20);
    for (const seed of ['', 'a', 'b', 'c']) {
      const at = renewAt(facts(lifetime, { now: issuedAt, current: { seed, madeAt: issuedAt } }));
      assert(at > issuedAt + lifetime / 3);
    }
  });

  test(`${name}: after failures 1, 10, 100 minutes, then daily, but at most a twentieth of the lifetime`, () => {
    const lastAttemptAt = notBefore + lifetime / 2;
    const steps = [minute, 10 * minute, 100 * minute, day, day, day];
    for (const [index, step] of steps.entries()) {
      const at = renewAt(facts(lifetime, { failedAttempts: index + 1, lastAttemptAt }));
      assert.equal(at - lastAttemptAt, Math.min(step, lifetime / 20));
    }
    assert.equal(
      renewAt(facts(lifetime, { failedAttempts: 1000, lastAttemptAt })) - lastAttemptAt,
      Math.min(day, lifetime / 20),
    );
  });

  test(`${name}: the time that the CA suggests replaces the vault's own, earlier or later`, () => {
    for (const ariMoment of [notBefore + lifetime / 10, own - 1, own + 1, emergency]) {
      assert.equal(renewAt(facts(lifetime, { ariMoment })), Math.floor(ariMoment));
    }
  });

  test(`${name}: a past ARI window makes the certificate due now`, () => {
    const now = notBefore + lifetime / 2;
    for (const ariMoment of [now - 1, notBefore - year, 0]) {
      assert(renewAt(facts(lifetime, { now, ariMoment })) <= now);
    }
  });

  test(`${name}: renewal is due with a twentieth of the lifetime left, even if the CA suggests later`, () => {
    for (const ariMoment of [emergency + 1, notAfter, notAfter + year, Number.MAX_SAFE_INTEGER]) {
      assert.equal(renewAt(facts(lifetime, { ariMoment })), Math.floor(emergency));
    }
  });

  test(`${name}: a changed ARI window moves the renewal, and a withdrawn one restores the vault's own time`, () => {
    const [first, second] = [own + lifetime / 100, own - lifetime / 10].map(Math.floor);
    assert.equal(renewAt(facts(lifetime, { ariMoment: first ?? 0 })), first);
    assert.equal(renewAt(facts(lifetime, { ariMoment: second ?? 0 })), second);
    assert.equal(renewAt(facts(lifetime, { ariMoment: null })), own);
  });

  test(`${name}: changed settings make the certificate due now, regardless of its ARI window`, () => {
    for (const now of [notBefore, notBefore + lifetime / 2, notAfter + year]) {
      for (const ariMoment of [null, now + day]) {
        assert.equal(renewAt(facts(lifetime, { now, changed: true, ariMoment })), now);
      }
    }
  });

  test(`${name}: a clock a year ahead makes the certificate due once, and not again within a twentieth`, () => {
    const now = notBefore + lifetime / 2 + Math.max(year, lifetime);
    assert(renewAt(facts(lifetime, { now })) <= now);
    // The CA, whose clock is right, gave another one; by this clock that has ended long ago.
    assert.equal(
      renewAt(facts(lifetime, { now, current: { madeAt: now } })),
      Math.floor(now + lifetime / 20),
    );
    // The private CA, whose clock is the vault's, gave one that is as good as any.
    const lasting = { madeAt: now, notBefore: now, notAfter: now + lifetime };
    assert(renewAt(facts(lifetime, { now, current: lasting })) > now + lifetime / 3);
  });

  test(`${name}: a clock that is a year behind makes nothing due, and once corrected the time is as before`, () => {
    const behind = notBefore + lifetime / 2 - Math.max(year, lifetime);
    assert.equal(renewAt(facts(lifetime, { now: behind })), own);
    assert.equal(renewAt(facts(lifetime, { now: own - 1, current: { madeAt: behind } })), own);
  });

  test(`${name}: a version issued while the clock was a year ahead is renewed at its usual time`, () => {
    const madeAt = notAfter + year;
    for (const now of [notBefore, notBefore + lifetime / 2, own - 1, own, own + 1, notAfter]) {
      assert.equal(renewAt(facts(lifetime, { now, current: { madeAt } })), own);
    }
  });

  test(`${name}: an attempt that failed while the clock was a year ahead is retried as if it had just failed`, () => {
    const now = notBefore + lifetime / 2;
    const at = renewAt(facts(lifetime, { now, failedAttempts: 1, lastAttemptAt: now + year }));
    assert.equal(at, now + minute);
    const daily = renewAt(facts(lifetime, { now, failedAttempts: 9, lastAttemptAt: now + year }));
    assert.equal(daily, now + Math.min(day, lifetime / 20));
  });

  test(`${name}: an attempt that failed while the clock was a year behind is retried immediately`, () => {
    const now = notBefore + lifetime / 2;
    const far = Math.max(year, lifetime);
    assert(renewAt(facts(lifetime, { now, failedAttempts: 9, lastAttemptAt: now - far })) <= now);
  });

  test(`${name}: an ARI time a year ago is due immediately, one a year ahead with a twentieth left`, () => {
    const now = notBefore + lifetime / 2;
    const far = Math.max(year, lifetime);
    assert(renewAt(facts(lifetime, { now, ariMoment: now - far })) <= now);
    assert.equal(renewAt(facts(lifetime, { now, ariMoment: now + far })), Math.floor(emergency));
  });

  test(`${name}: a Retry-After is respected until a twentieth is left, and for at most a week`, () => {
    const lastAttemptAt = notBefore + lifetime / 2;
    const failed = { failedAttempts: 1, lastAttemptAt };
    const after = (retryAfter: number) =>
      renewAt(facts(lifetime, { ...failed, retryAfter: lastAttemptAt + retryAfter })) - lastAttemptAt;
    const tillEmergency = Math.max(emergency - lastAttemptAt, hour);
    for (const wish of [3 * day, 7 * day, 7 * day + 1, 1000 * year]) {
      assert.equal(after(wish), Math.min(wish, 7 * day, tillEmergency));
    }
    // Less than the vault's own patience changes nothing.
    for (const short of [-year, 0, 1]) assert.equal(after(short), minute);
  });
}

for (const [title, isOwn, ahead, isDue] of [
  ['the private CA issued with a clock 30 days ahead is due now', true, 30 * day, true],
  ['the private CA issued with a clock five minutes ahead is not due', true, 5 * minute, false],
  ['another CA issued 30 days ahead of the clock is not due', false, 30 * day, false],
] as const) {
  test(`a version that ${title}`, () => {
    const now = notBefore - ahead;
    const moment = renewAt(facts(90 * day, { now, current: { isOwn } }));
    assert.equal(moment <= now, isDue);
  });
}

test('the renewal time is deterministic and does not change between releases', () => {
  assert.equal(renewAt(facts(90 * day)), renewAt(facts(90 * day)));
  // Frozen: a jitter that changed with an upgrade would move the renewals of a whole fleet at once.
  assert.equal(new Date(renewAt(facts(90 * day))).toISOString(), '2027-01-19T12:28:27.674Z');
});

test('a thousand certificates that were issued together are not renewed together', () => {
  const moments = Array.from({ length: 1000 }, (_, n) =>
    renewAt(facts(90 * day, { current: { seed: String(n) } })),
  );
  const latest = notBefore + 60 * day;
  const tenths = new Map<number, number>();
  for (const at of moments) {
    const tenth = Math.floor((latest - at) / ((90 * day) / 500));
    tenths.set(tenth, (tenths.get(tenth) ?? 0) + 1);
  }
  assert.equal(tenths.size, 10);
  for (const count of tenths.values()) assert(count > 60 && count < 140, String(count));
});

test('without failures the last attempt does not change the renewal time', () => {
  const lastAttemptAt = notBefore + 60 * day;
  assert.equal(renewAt(facts(90 * day, { lastAttemptAt })), renewAt(facts(90 * day)));
});

test('failures without a last attempt time do not change the renewal time', () => {
  assert.equal(renewAt(facts(90 * day, { failedAttempts: 3 })), renewAt(facts(90 * day)));
});

test('with a twentieth left and after expiry, failures are retried hourly with jitter', () => {
  for (const days of [85.5, 86, 89.9, 90, 100, 1000]) {
    const lastAttemptAt = notBefore + days * day;
    const waits = Array.from({ length: 100 }, (_, seed) => {
      const current = { seed: String(seed) };
      return (
        renewAt(facts(90 * day, { now: lastAttemptAt, failedAttempts: 9, lastAttemptAt, current })) -
        lastAttemptAt
      );
    });
    assert(waits.every((wait) => wait >= hour && wait <= 1.1 * hour));
    assert(new Set(waits).size > 90);
  }
  // A day before that moment, the daily attempt is the one at that moment.
  const lastAttemptAt = notBefore + 85 * day;
  assert.equal(
    renewAt(facts(90 * day, { now: lastAttemptAt, failedAttempts: 9, lastAttemptAt })),
    notBefore + 85.5 * day,
  );
});

test('daylight saving time does not shift renewal times in any time zone', () => {
  // The nights of 2026 and 2027 in which clocks are set in Europe and in America, both ways.
  const nights = ['2026-10-25', '2026-11-01', '2027-03-14', '2027-03-28', '2027-10-31', '2027-11-07'];
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'];
  const before = process.env.TZ;
  try {
    for (const [name, lifetime] of lifetimes) {
      const distances = new Set<number>();
      for (const zone of zones) {
        process.env.TZ = zone;
        for (const night of nights) {
          for (let hours = -48; hours <= 48; hours += 1) {
            const start = Date.parse(`${night}T00:00:00Z`) + hours * hour;
            const current = { notBefore: start, notAfter: start + lifetime, madeAt: start };
            distances.add(renewAt(facts(lifetime, { now: start, current })) - start);
          }
        }
      }
      assert.equal(distances.size, 1, name);
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
});

test('a certificate that was never issued is due now, and after failures 1, 10, 100 minutes, then daily', () => {
  const now = notBefore;
  assert.equal(renewAt(nothingYet({ now })), now);
  assert.equal(renewAt(nothingYet({ now, ariMoment: now + day })), now);
  for (const [index, step] of [minute, 10 * minute, 100 * minute, day, day].entries()) {
    assert.equal(renewAt(nothingYet({ now, failedAttempts: index + 1, lastAttemptAt: now })), now + step);
  }
  const failed = { now, failedAttempts: 1, lastAttemptAt: now };
  assert.equal(renewAt(nothingYet({ ...failed, retryAfter: now + 3 * day })), now + 3 * day);
  assert.equal(renewAt(nothingYet({ ...failed, retryAfter: now + year })), now + 7 * day);
});

/** Times within two centuries, as clocks that are wrong may have them. */
const anyTime = fc.integer({ min: notBefore - 100 * year, max: notBefore + 100 * year });
const anyLifetime = fc.integer({ min: minute, max: 3650 * day });
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const anyFacts: fc.Arbitrary<RenewalFacts> = fc.record({
  now: anyTime,
  current: maybe(
    fc
      .record({ notBefore: anyTime, lifetime: anyLifetime, madeAt: anyTime, seed: fc.string() })
      .map(({ lifetime, ...rest }) => ({ ...rest, notAfter: rest.notBefore + lifetime })),
  ),
  changed: fc.boolean(),
  ariMoment: maybe(anyTime),
  failedAttempts: fc.nat({ max: 20 }),
  lastAttemptAt: maybe(anyTime),
  retryAfter: maybe(anyTime),
});

test('for any facts, the renewal time is a safe integer', () => {
  fc.assert(fc.property(anyFacts, (some) => Number.isSafeInteger(renewAt(some))));
});

test('for any facts, a version is due by its last twentieth, or a twentieth after it was issued', () => {
  fc.assert(
    fc.property(anyFacts, (some) => {
      const { current, now } = some;
      if (current === null || some.failedAttempts > 0) return true;
      const twentieth = (current.notAfter - current.notBefore) / 20;
      const got = current.madeAt > now ? current.notBefore : current.madeAt;
      return renewAt(some) <= Math.max(current.notAfter - twentieth, got + twentieth, now);
    }),
  );
});

test('for any facts, no version is due by age alone within a twentieth after it was issued', () => {
  fc.assert(
    fc.property(anyFacts, ({ current, ...some }) => {
      if (current === null || current.madeAt > some.now) return true;
      const twentieth = (current.notAfter - current.notBefore) / 20;
      const byAge = { ...some, current, changed: false, ariMoment: null, failedAttempts: 0 };
      return renewAt(byAge) >= Math.floor(current.madeAt + twentieth);
    }),
  );
});

test('for any clock offset, a vault issues at most 21 times per lifetime', () => {
  fc.assert(
    fc.property(anyTime, anyTime, fc.integer({ min: 2, max: 90 * 24 }), (truth, wrong, hours) => {
      const lifetime = hours * hour;
      // The CA's clock is right, the vault's is off by so much; for a lifetime, every moment is heeded at once.
      let current: CurrentFacts | null = null;
      let issued = 0;
      for (let at = truth; at < truth + lifetime; ) {
        const now = at + wrong - truth;
        const moment = renewAt({ ...facts(lifetime, { now }), current });
        if (moment > now) {
          at += moment - now;
          continue;
        }
        issued += 1;
        current = { notBefore: at, notAfter: at + lifetime, madeAt: now, seed: String(issued) };
      }
      return issued <= 21;
    }),
  );
});

test('an earlier ARI time or a shorter Retry-After never makes the renewal later', () => {
  fc.assert(
    fc.property(anyFacts, anyTime, anyTime, (some, one, other) => {
      const [early, late] = [Math.min(one, other), Math.max(one, other)];
      const ari = (ariMoment: number) => renewAt({ ...some, ariMoment });
      const wait = (retryAfter: number) => renewAt({ ...some, retryAfter });
      return ari(early) <= ari(late) && wait(early) <= wait(late);
    }),
  );
});

test('more failures never bring the next attempt nearer', () => {
  fc.assert(
    fc.property(anyFacts, anyTime, (some, lastAttemptAt) => {
      const after = (failedAttempts: number) => renewAt({ ...some, failedAttempts, lastAttemptAt });
      const moments = [1, 2, 3, 4, 5, 20].map(after);
      return moments.every((moment, index) => moment >= (moments[index - 1] ?? moment));
    }),
  );
});

test('after a failure the wait is never longer than a twentieth, or a week where the CA asks for it', () => {
  fc.assert(
    fc.property(anyFacts, fc.integer({ min: 1, max: 20 }), anyTime, (some, failedAttempts, lastAttemptAt) => {
      const moment = renewAt({ ...some, failedAttempts, lastAttemptAt });
      const longest = some.current === null ? day : (some.current.notAfter - some.current.notBefore) / 20;
      const limit = some.retryAfter === null ? Math.min(day, longest) : Math.max(7 * day, longest);
      return moment <= Math.min(lastAttemptAt, some.now) + limit;
    }),
  );
});

test('rescheduling after the clock has advanced never postpones what is due', () => {
  fc.assert(
    fc.property(anyFacts, fc.nat({ max: 10 * year }), (some, later) => {
      const { now, lastAttemptAt, current } = some;
      // What lies ahead of the clock is taken for a mistake of the clock, and judged anew when it is reached.
      if ((lastAttemptAt ?? 0) > now || (current?.madeAt ?? 0) > now) return true;
      return renewAt(some) > now || renewAt({ ...some, now: now + later }) <= now + later;
    }),
  );
});

/** By the failures so far, which issuer is asked next. */
const [p, f] = ['primary', 'fallback'] as const;
const turnsNearTheEnd = [p, p, f, p, f, p, f, p];
const turnsBeforeTheFirst = [p, p, p, f, p, f, p, f];
const fallback = { retryAfter: null };

for (const [name, lifetime] of lifetimes) {
  const left = lifetime < 10 * day ? lifetime / 4 : lifetime / 6;
  const end = notBefore + lifetime;

  test(`${name}: expiry is near with ${(left / hour).toFixed(1)} hours left`, () => {
    const near = (now: number) => isNearExpiry(facts(lifetime, { now }));
    assert.deepEqual([notBefore, end - left - 1].map(near), [false, false]);
    assert.deepEqual([Math.ceil(end - left), end, end + year].map(near), [true, true, true]);
  });

  test(`${name}: the fallback is used only near expiry, after two failures, and then every other time`, () => {
    for (const [failedAttempts, asked] of turnsNearTheEnd.entries()) {
      const at = (now: number) => turnOf(facts(lifetime, { now, failedAttempts, fallback }));
      assert.equal(at(end - left - 1), 'primary');
      assert.equal(at(Math.ceil(end - left)), asked, `${failedAttempts} failures near the end`);
      assert.equal(at(end + year), asked, `${failedAttempts} failures after it`);
      assert.equal(turnOf(facts(lifetime, { now: end, failedAttempts })), 'primary');
    }
  });

  test(`${name}: with a twentieth left, an issuer is retried hourly despite its Retry-After`, () => {
    const lastAttemptAt = Math.ceil(end - lifetime / 20);
    for (const failedAttempts of [1, 2, 3, 4, 9]) {
      const wish = lastAttemptAt + 7 * day;
      const failed = { now: lastAttemptAt, failedAttempts, lastAttemptAt };
      const backoff = Math.min([minute, 10 * minute, 100 * minute][failedAttempts - 1] ?? day, lifetime / 20);
      const expected = lastAttemptAt + Math.max(Math.min(backoff, 1.1 * hour), hour);
      const alone = renewAt(facts(lifetime, { ...failed, retryAfter: wish }));
      assert(alone >= lastAttemptAt + hour - 1 && alone <= expected, `${alone - lastAttemptAt}`);
      const both = { retryAfter: wish, fallback: { retryAfter: wish } };
      assert.equal(renewAt(facts(lifetime, { ...failed, ...both })), alone);
    }
  });

  test(`${name}: near expiry a Retry-After of one issuer never delays the other, which is tried in its place`, () => {
    const now = Math.ceil(end - left);
    for (const failedAttempts of [1, 2, 3, 4]) {
      const failed = { now, failedAttempts, lastAttemptAt: now };
      const soonest = renewAt(facts(lifetime, failed));
      const wish = now + 7 * day;
      const primaryWaits = { ...failed, retryAfter: wish, fallback };
      assert.equal(renewAt(facts(lifetime, primaryWaits)), soonest);
      assert.equal(turnOf(facts(lifetime, { ...primaryWaits, now: soonest })), 'fallback');
      const fallbackWaits = { ...failed, fallback: { retryAfter: wish } };
      assert.equal(renewAt(facts(lifetime, fallbackWaits)), soonest);
      assert.equal(turnOf(facts(lifetime, { ...fallbackWaits, now: soonest })), 'primary');
    }
  });

  test(`${name}: a Retry-After of the primary issuer is kept until expiry is near, and then the fallback is tried`, () => {
    const now = notBefore + lifetime / 2;
    const failed = { now, failedAttempts: 1, lastAttemptAt: now, retryAfter: now + 7 * day, fallback };
    const near = Math.ceil(end - left);
    const expected = Math.floor(
      Math.max(renewAt(facts(lifetime, { ...failed, retryAfter: null })), Math.min(now + 7 * day, near)),
    );
    assert.equal(renewAt(facts(lifetime, failed)), expected);
    assert.equal(
      turnOf(facts(lifetime, { ...failed, now: near })),
      near < now + 7 * day ? 'fallback' : 'primary',
    );
    assert.equal(turnOf(facts(lifetime, { ...failed, now: near - 2 })), 'primary');
  });

  test(`${name}: urgentAt is earlier for requested and changed renewals, and later after three failures`, () => {
    const early = facts(lifetime, { now: notBefore + lifetime / 2 });
    const nearEnd = Math.floor(end - left);
    assert.equal(urgentAt(early, 'schedule'), nearEnd);
    assert.equal(urgentAt(early, 'person'), Math.min(early.now, nearEnd));
    assert.equal(urgentAt({ ...early, changed: true }, 'schedule'), Math.min(early.now, nearEnd));
    const late = facts(lifetime, { now: end, failedAttempts: 2 });
    assert.equal(urgentAt(late, 'schedule'), nearEnd);
    assert.equal(urgentAt({ ...late, failedAttempts: 3 }, 'schedule'), end);
  });
}

test('without a version, expiry is never near, and the fallback alternates after three failures', () => {
  assert.equal(isNearExpiry(nothingYet()), false);
  for (const [failedAttempts, asked] of turnsBeforeTheFirst.entries()) {
    assert.equal(turnOf(nothingYet({ failedAttempts, fallback })), asked, `${failedAttempts} failures`);
  }
});
