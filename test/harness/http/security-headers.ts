/**
 * What every answer of the vault must tell browsers, and what none may say: judged from the outside, header by header.
 */

const demanded: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Headers that name what serves the vault. */
const banners = ['Server', 'X-Powered-By', 'X-AspNet-Version', 'X-Generator', 'Via', 'X-Runtime'];

/** What is wrong with the headers of an answer, or nothing. */
export function headerComplaints(headers: Headers): string[] {
  const policy = headers.get('Content-Security-Policy') ?? '';
  const directives = policy.split('; ');
  return [
    ...Object.entries(demanded).flatMap(([name, value]) =>
      headers.get(name) === value ? [] : [`${name} is ${headers.get(name)}`],
    ),
    ...["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"].flatMap((directive) =>
      directives.includes(directive) ? [] : [`the policy "${policy}" lacks ${directive}`],
    ),
    // Two headers of one name would come joined by a comma; of two policies, both count.
    ...(/unsafe|\*|https?:|,/.test(policy) ? [`the policy "${policy}" lets something in`] : []),
    ...[...headers.keys()].filter((name) => name.startsWith('access-control-')),
    ...[...banners, 'Timing-Allow-Origin'].filter((name) => headers.has(name)),
  ];
}
