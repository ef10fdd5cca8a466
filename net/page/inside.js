// inside.js — what is inside one server: a strip of memory for each device, a row for each model, and the
// field for an admin's key.
import {
  admin_key_is_missing,
  begin_admin,
  forget_admin_key,
  knows_admin_key,
  list_models,
  may_administer,
  use_admin_key,
} from "./admin.js";
import { token } from "./credentials.js";
import { refresh_models } from "./models.js";
import { Rows } from "./rows.js";
import { Strips } from "./strip.js";

const $ = (id) => document.getElementById(id);
const strips = new Strips($("strips"));
const rows = new Rows($("models-rows"), order_changes);
let look_again = async () => {};
let orders = 0; // that are under way
let there = null; // the models that can be chosen, the last time

/** `look`: looks at the server at once. */
export function offer_orders(look) {
  look_again = look;
  $("admin-form").onsubmit = (event) => {
    event.preventDefault();
    take_key();
  };
  $("forget-admin-key").onclick = () => {
    forget_admin_key();
    $("admin-words").textContent = "";
    look_again();
  };
}

/** A connection opens. */
export function enter() {
  begin_admin(token() !== null);
  there = null;
}

/** Whether something changes now, so that looking more often is worth it. */
export const inside_changes = () => orders > 0 || $("models-rows").querySelector("[data-state=loading]");

/** Shows `models` and `devices` of /v1/stats, and what an administrator sees beside them. */
export async function show_inside({ models = [], devices = [] }) {
  const all = $("device").open ? await listed() : null;
  const counted = new Map(models.map((model) => [model.name, model]));
  const joined = all ? all.models.map((model) => ({ ...counted.get(model.name), ...model })) : models;
  strips.show((all?.devices ?? devices).filter(({ models, total }) => models > 0 || total > 0));
  $("devices-there").hidden = $("strips").childElementCount === 0;
  const plain = joined.length < 2 && joined.every(({ state }) => state === "ready") && !may_administer();
  $("models-there").hidden = plain || joined.length === 0;
  const left_out = rows.show(joined, performance.now());
  $("models-more").textContent = left_out > 0 ? `${left_out.toLocaleString("en")} more are known.` : "";
  show_key();
  follow_choice(joined);
}

async function listed() {
  try {
    return await list_models();
  } catch {
    return null; // the connection says that the server is gone
  }
}

function show_key() {
  $("admin").hidden = !admin_key_is_missing() && !knows_admin_key();
  $("admin-form").hidden = knows_admin_key();
  $("admin-known").hidden = !knows_admin_key();
}

async function take_key() {
  const typed = $("admin-key").value;
  $("admin-key").value = "";
  try {
    await use_admin_key(typed);
    $("admin-words").textContent = "";
  } catch ({ message }) {
    $("admin-words").textContent = message;
  }
  await look_again();
}

async function order_changes(begins) {
  orders += begins ? 1 : -1;
  await look_again();
}

/** A model that comes or goes is offered at the top of the page, or is not any more. */
function follow_choice(models) {
  const can = ({ state, level }) => ["ready", "draining", "asleep"].includes(state) || level !== undefined;
  const now = JSON.stringify(models.filter(can).map(({ name }) => name));
  if (there !== null && now !== there) refresh_models();
  there = now;
}
