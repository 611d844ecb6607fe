/** The proxies of the environment, in the form that Node takes them. */
import { OperatorError } from '../base/operator-error.ts';

/** What the proxies are read from: HTTP_PROXY, HTTPS_PROXY, NO_PROXY and their lower-case forms. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The variables with whole URLs. Node passes over a proxy without a scheme, as many write it, or with one that it does not
 * speak, without a word: the latter is refused by OperatorError.
 */
export function proxiesIn(environment: ProxyEnvironment): Record<string, string | undefined> {
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];
  const proxies = names.map((name) => {
    const value = environment[name]?.trim();
    if (!value) return [name, undefined];
    const url = URL.parse(value.includes('://') ? value : `http://${value}`);
    if (url === null || !['http:', 'https:'].includes(url.protocol)) {
      throw new OperatorError(`${name} is not the URL of an HTTP proxy`, {
        hint: 'Set it to a URL such as http://proxy.example.com:3128; only HTTP proxies are supported.',
      });
    }
    return [name, url.href];
  });
  const { no_proxy, NO_PROXY } = environment;
  return { ...Object.fromEntries(proxies), no_proxy, NO_PROXY };
}
