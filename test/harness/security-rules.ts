/** The rules of security-plan.ts, each a function from the facts of the sources to complaints. */
import type { House, Rule } from './house-rules.ts';
import {
  answerMembers,
  answerText,
  answerWriters,
  comparedSecrets,
  constantTime,
  exposers,
  refusedHeaders,
  secretNames,
} from './security-plan.ts';

/** By what it promises. */
export const securityRules: Readonly<Record<string, Rule>> = {
  'answers are written in one place': answersWrittenElsewhere,
  'no header lets other sites in, or tells what serves the vault': headersRefused,
  'secrets are exposed only where they are needed': secretsExposed,
  'secrets are compared in one place, in constant time': secretsCompared,
};

export function answersWrittenElsewhere(house: House): string[] {
  const others = sources(house).filter(({ path }) => !answerWriters.some(({ file }) => file === path));
  return others.flatMap(({ path, members, strings }) => [
    ...members
      .filter((name) => answerMembers.includes(name))
      .map((name) => `${path} writes an answer: ${name}`),
    ...strings.filter((text) => answerText.test(text)).map((text) => `${path} writes an answer: ${text}`),
  ]);
}

export function headersRefused(house: House): string[] {
  return sources(house).flatMap(({ path, strings }) =>
    strings.filter((text) => refusedHeaders.test(text)).map((text) => `${path} names the header ${text}`),
  );
}

export function secretsExposed(house: House): string[] {
  return sources(house).flatMap(({ path, members }) => {
    const calls = members.filter((name) => name === 'expose').length;
    const known = exposers.find(({ file }) => file === path)?.calls ?? 0;
    return calls === known ? [] : [`${path} exposes secrets at ${calls} places, known are ${known}`];
  });
}

export function secretsCompared(house: House): string[] {
  return sources(house).flatMap(({ path, imports, comparisons }) => {
    if (path === constantTime) return [];
    const own = imports.some(({ names }) => names.includes('timingSafeEqual'));
    const found = comparisons
      .filter(({ names, withLiteral }) => names.some((name) => secretNames.test(name)) && !withLiteral)
      .filter(({ text }) => !comparedSecrets.some((one) => one.file === path && one.text === text));
    return [
      ...(own ? [`${path} compares by itself: timingSafeEqual`] : []),
      ...found.map(({ text }) => `${path} compares a secret: ${text}`),
    ];
  });
}

/** Entries of the tables that nothing needs any more. */
export function needlessEntries(house: House): string[] {
  return [
    ...exposers
      .filter(({ file }) => !sources(house).some(({ path }) => path === file))
      .map(({ file }) => `${file} may expose secrets, but is gone`),
    ...comparedSecrets
      .filter(
        ({ file, text }) =>
          !sources(house).some(
            ({ path, comparisons }) => path === file && comparisons.some((one) => one.text === text),
          ),
      )
      .map(({ file, text }) => `${file} may compare ${text}, but does not`),
  ];
}

function sources(house: House): House {
  return house.filter(({ path }) => path.startsWith('src/'));
}
