/** The URLs of the ACME server, as clients see them. */

export type AcmeUrls = {
  readonly directory: string;
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly revokeCert: string;
  readonly keyChange: string;
  readonly renewalInfo: string;
  readonly account: (id: number) => string;
  readonly orders: (accountId: number, before?: number) => string;
  readonly order: (id: number) => string;
  readonly finalize: (orderId: number) => string;
  readonly authorization: (orderId: number, position: number) => string;
  readonly challenge: (orderId: number, position: number, type: string) => string;
  /** `alternate` counts from 1; without it, the usual chain. */
  readonly certificate: (certificateId: number, version: number, alternate?: number) => string;
};

/** Those of the directory of an issuer, by the base of URLs for the client. */
export function acmeUrls(baseUrl: string, issuer: string): AcmeUrls {
  // The names of issuers need no encoding; what a stranger writes in place of one does.
  const base = `${baseUrl}/acme/${encodeURIComponent(issuer)}`;
  return {
    directory: `${base}/directory`,
    newNonce: `${base}/new-nonce`,
    newAccount: `${base}/new-account`,
    newOrder: `${base}/new-order`,
    revokeCert: `${base}/revoke-cert`,
    keyChange: `${base}/key-change`,
    renewalInfo: `${base}/renewal-info`,
    account: (id) => `${base}/account/${id}`,
    orders: (id, before) => `${base}/account/${id}/orders${before === undefined ? '' : `?before=${before}`}`,
    order: (id) => `${base}/order/${id}`,
    finalize: (id) => `${base}/order/${id}/finalize`,
    authorization: (order, position) => `${base}/authorization/${order}/${position}`,
    challenge: (order, position, type) => `${base}/challenge/${order}/${position}/${type}`,
    certificate: (id, version, alternate) =>
      `${base}/certificate/${id}/${version}${alternate === undefined ? '' : `/${alternate}`}`,
  };
}

/** The number in a part of a path; undefined for other text. */
export function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined;
}

/** The id of the account with this URL; undefined if it is not one of this directory. */
export function accountIdIn(url: string, { account }: AcmeUrls): number | undefined {
  const id = numberIn(url.slice(url.lastIndexOf('/') + 1));
  return id !== undefined && url === account(id) ? id : undefined;
}
