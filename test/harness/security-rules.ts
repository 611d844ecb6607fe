/** The rules of security-plan.ts, each a function from the facts of the sources to complaints. */
import type { House, Rule } from './house-rules.ts';
import { answerMembers, answerText, answerWriters, refusedHeaders } from './security-plan.ts';

/** By what it promises. */
export const securityRules: Readonly<Record<string, Rule>> = {
  'answers are written in one place': answersWrittenElsewhere,
  'no header lets other sites in, or tells what serves the vault': headersRefused,
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

function sources(house: House): House {
  return house.filter(({ path }) => path.startsWith('src/'));
}
