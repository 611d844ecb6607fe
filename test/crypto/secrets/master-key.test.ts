/** The master key: what is derived from it never changes, differs by purpose, and does not show the key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Secret } from '../../../src/base/secret.ts';
import { type KeyPurpose, MasterKey } from '../../../src/crypto/secrets/master-key.ts';

const bytes = Buffer.from([...Array(32).keys()]);
const key = new MasterKey(new Secret(bytes));

/** HKDF-SHA-256 of the bytes 00 … 1f. Frozen: databases depend on every one of these. */
const frozen: Record<KeyPurpose, string> = {
  'key id': '22167d1c05b7bba443a35bb9804336c71483d18b2cd21cc5fa012c876bb25f86',
  'seal: certificate private key': 'bece9264069a031fe4284c2df16076f10157b2ff0314b35f74df0aa01c7eeed9',
  'seal: certificate authority key': 'eeca3b0d3bead0a43f89d2dfc570a33a73b352f465a106a501a722e92a281727',
  'seal: master key check': '0e1e44033ba1b6eb1348bd597711fc3f8553e6aca9ed6c5e91ea42c86f1903b3',
  'seal: acme account key': '5a111fb216e3f3285a2a94daf13ed2359cbd7e8a3191377b9ac036ff9680801e',
  'seal: external account key': 'fcde95dbbfb8c0f1d06b2eddf50d19c23af1f0dce3b7a08b4289173f30c722a1',
  'seal: dns provider secret': '3d00e7185d2bd4f1f70b1bbe7edcadf80cbdbc5ee1b615c967f946da2820d538',
  'seal: audit key': '12e2f64fd3fc8b8041bff451e70889398187b6eed2f4c3ddf0f47f35e8b25fb0',
  'seal: notification channel settings': '1cafe3b3bb55a3c7cb6a69ea69bded2f8105eb2213d1df6af12a1c1a30bd8943',
  'seal: deploy target settings': '85ed27e68a64108a1baa5b6efeea4a36976e71cbe77d34b39eca1c00f6ba83a6',
  'seal: oidc sign-in': '5ae57bfaa5ca5d258bb3d38037b0c261ef20be247f75111111af9dc6e9054043',
  'seal: authenticator app secret': 'fb92b1649a351d7c1b046c60d459c66d6896f68d75955ac8113d3213d7ef8706',
  'seal: second factor': '314b0b03aa9c6e74a64afc2f5b019dbca1969c7f1aee0e4a4294dd960bf76617',
  'entity tag': 'd42744eac1990b03248bea9600cb2addede0fab4f80cfc9c626e38760db8aa53',
  'sign: session': 'd8a52d34f6e4ab9063360bd81f48baa13c19ffbfcb4dc19c75a6b9b8090efb6b',
  'sign: bearer session': 'b382302c41d0fbd971ae498790516ef65bdb1ab6d87cbc89e96b227b0b4ae5a1',
  'authenticate: backup': 'de61fdc4608dce2de4065a632ecf46cede2b581dd3f4f04e8a3ed225ea798a5f',
  'authenticate: vault mark': '1ce936df06e05664697b567ece1947d7bb115d2c8bf724d0b1f7b7411ef4a815',
};

for (const [purpose, hex] of Object.entries(frozen) as [KeyPurpose, string][]) {
  test(`the derived key for "${purpose}" has the frozen value`, () => {
    assert.equal(key.derive(purpose).export().toString('hex'), hex);
  });
}

test('the ID of a master key is the first 8 bytes of the key derived for "key id"', () => {
  assert.equal(key.id.toString('hex'), '22167d1c05b7bba4');
});

test('every purpose has a different derived key, which is never the master key', () => {
  const derived = Object.keys(frozen).map((purpose) =>
    key
      .derive(purpose as KeyPurpose)
      .export()
      .toString('hex'),
  );
  assert.equal(new Set([...derived, bytes.toString('hex')]).size, derived.length + 1);
});

test('one bit of the master key changes everything that is derived from it', () => {
  const changed = Buffer.from(bytes);
  changed[31] = 0x1e;
  const other = new MasterKey(new Secret(changed));
  assert.notDeepEqual(other.id, key.id);
  for (const purpose of Object.keys(frozen) as KeyPurpose[]) {
    assert.equal(other.derive(purpose).equals(key.derive(purpose)), false);
  }
});

test('an authentication code is HMAC-SHA-256 under the key for its purpose', () => {
  const frozenCode = 'de394bf75ba1840376cc7d64e9775dcdc62fed5dd45c7e8f1fd0e2be74c87f96';
  assert.equal(key.authenticate('entity tag', Buffer.from('frozen')).toString('hex'), frozenCode);
});

for (const length of [0, 16, 31, 33, 64]) {
  test(`a master key of ${length} bytes is rejected`, () => {
    assert.throws(() => new MasterKey(new Secret(Buffer.alloc(length))), /32 bytes/);
  });
}

test('inspecting a master key shows its id and nothing of the key', () => {
  const shown = inspect(key, { depth: null, showHidden: true });
  assert.equal(shown.includes('00 01 02 03'), false);
  assert.equal(JSON.stringify(key).includes('"data":[0,1,2,3'), false);
});
