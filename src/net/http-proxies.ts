/** Reads the HTTP proxies from the environment, in the form that Node expects. */
import { OperatorError } from '../base/operator-error.ts';

/** The variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY and their lower-case forms. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The variables with complete URLs. Node silently ignores a proxy without a scheme, which is common, or with an
 * unsupported scheme; an unsupported one throws OperatorError.
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
