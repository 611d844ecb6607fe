/** Where secrets may be sent to over HTTP: the one rule for the APIs of DNS providers and for whoever gets notifications. */

/** Whether it is an https: URL, or an http: one of this very machine, with neither user nor fragment in it. */
export function isSecureUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}

/** Whether a host, as a URL writes it, is this very machine. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
