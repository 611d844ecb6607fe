/** Tests an ACME CA: reads its directory and shows what it offers. */

import { useEffect, useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Facts } from '../components/page.tsx';
import { Spinner } from '../components/spinner.tsx';
import { WebLink } from '../components/web-link.tsx';
import type { Issuer, IssuerOffer } from '../data/administration-shapes.ts';
import { post } from '../data/api.ts';
import { useAction } from '../data/resource.ts';

export function IssuerTestDialog({
  issuer: { name, profile },
  onClose,
}: {
  readonly issuer: Issuer;
  readonly onClose: () => void;
}) {
  const [offer, setOffer] = useState<IssuerOffer>();
  const { run, isBusy, error } = useAction(async () => {
    setOffer(undefined);
    setOffer(await post<IssuerOffer>(`/issuers/${encodeURIComponent(name)}/test`));
  });
  useEffect(() => void run(), []);
  const isProfileGone =
    offer && profile !== null && !offer.profiles.some((offered) => offered.name === profile);
  return (
    <Dialog title={`Test ${name}`} onClose={onClose}>
      <div class="stack">
        {isBusy && <Spinner label="Reading the directory" />}
        {error && <Problem error={error} />}
        {offer && <Offer name={name} offer={offer} />}
        {isProfileGone && (
          <Notice tone="warning">
            The CA no longer offers profile {profile}, which this issuer requests.
          </Notice>
        )}
      </div>
      <div class="dialog-buttons">
        <Button look="quiet" onClick={onClose}>
          Close
        </Button>
        <Button look="primary" isBusy={isBusy} onClick={() => void run()}>
          Test again
        </Button>
      </div>
    </Dialog>
  );
}

function Offer({ name, offer }: { readonly name: string; readonly offer: IssuerOffer }) {
  const { profiles, terms_of_service: terms } = offer;
  return (
    <>
      <Notice tone="good" title={`${name} is reachable and its HTTPS certificate is trusted`} />
      <Facts
        facts={[
          ['Directory', offer.directory_url],
          [
            'Profiles',
            profiles.length === 0
              ? 'none'
              : profiles.map((profile) => (
                  <div key={profile.name}>
                    {profile.name} <span class="quiet small">{profile.description}</span>
                  </div>
                )),
          ],
          ['Terms of service', terms !== null && <WebLink key="terms" to={terms} />],
          ['External account', offer.external_account_required && 'required'],
          [
            'Renewal information (ARI)',
            offer.renewal_information ? 'supported' : 'not supported; the vault renews by lifetime',
          ],
        ]}
      />
    </>
  );
}
