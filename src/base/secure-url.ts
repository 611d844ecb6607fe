/** Which URLs secrets may be sent to over HTTP: one rule for DNS provider APIs and notification channels. */

/** Whether it is an https: URL, or an http: URL of this host, without user and fragment. */
export function isSecureUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
}

/** Whether a host, as written in a URL, is this host. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
