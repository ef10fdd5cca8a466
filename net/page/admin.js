// admin.js — what an administrator may ask and order of the models. Browser tokens are no administrators: the
// key is typed into this page, and lives in this module alone until the page is closed. Where the server has
// no keys, pages of its own machine may ask without one. A server that said no is not asked again.
const local_hosts = /^(localhost|127(\.\d+){3}|\[::1\])$/;
let key = "";
let keyless = false; // the server has no keys
let refused = false; // without a key, on this connection

/** A connection opens. `has_keys`: the page came in with a browser token. */
export function begin_admin(has_keys) {
  keyless = !has_keys;
  refused = false;
}

/** Whether the server has keys, and the key of an admin is not known here. */
export const admin_key_is_missing = () => !keyless && key === "";
export const knows_admin_key = () => key !== "";

/** Whether to ask at all. */
export function may_administer() {
  return key !== "" || (keyless && !refused && local_hosts.test(location.hostname));
}

export function forget_admin_key() {
  key = "";
}

/** All models and devices, as /v1/admin/models has them; null where nobody may ask or nobody answers. */
export async function list_models() {
  if (!may_administer()) return null;
  const answer = await fetch("v1/admin/models", { headers: headers(key) });
  if (answer.ok) return answer.json();
  if ([401, 403, 404].includes(answer.status)) turned_away();
  return null;
}

/** Tries a key. Throws an Error in words for people; the key is known only if the server takes it. */
export async function use_admin_key(typed) {
  const answer = await fetch("v1/admin/models", { headers: headers(typed) });
  if (answer.status === 401) throw new Error("The server does not accept this key.");
  if (answer.status === 403) throw new Error("This key is not the key of an admin.");
  if (!answer.ok) throw new Error(await words_of(answer));
  key = typed;
}

/**
 * Orders something of a model, and waits until it is done: /v1/admin/models/{name}. Throws an Error in words
 * for people.
 * @param {{action?: "load" | "unload" | "sleep" | "wake", share?: number, pinned?: boolean}} what
 */
export async function order(name, what) {
  const answer = await fetch(`v1/admin/models/${encodeURIComponent(name)}`, {
    method: "POST",
    headers: { ...headers(key), "content-type": "application/json" },
    body: JSON.stringify(what),
  });
  if (answer.ok) return;
  if (answer.status === 401 || answer.status === 403) turned_away();
  throw new Error(await words_of(answer));
}

/** The key was taken back, or there is no right without one. */
function turned_away() {
  if (key === "") refused = true;
  forget_admin_key();
}

const headers = (of) => (of === "" ? {} : { authorization: `Bearer ${of}` });

async function words_of(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return `The server answered with ${answer.status}.`;
  }
}
