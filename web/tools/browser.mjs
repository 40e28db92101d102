import { chromium } from 'playwright-core';

const args = ['no-sandbox', 'disable-gpu', 'disable-background-networking', 'disable-component-update', 'disable-sync'];

/** Debian's chromium, kept from talking to anybody. */
export function openBrowser() {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [...args, 'no-first-run'].map((arg) => `--${arg}`),
  });
}
