// chat_room.cpp — a chat over TCP: an actor for each room, and one for each client.
//
//   chat_room 5555, then in two terminals: nc localhost 5555
//
// A client's first line is "ROOM NAME"; whatever it writes afterwards is said to everybody in that room.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <iostream>
#include <map>
#include <sstream>
#include <weir/actors.hpp>

namespace asio = boost::asio;
using asio::ip::tcp;
using socket_ptr = std::shared_ptr<tcp::socket>;

using client = weir::ref<std::string>;  // takes lines to write
struct join {
  client who;
};
struct leave {
  client who;
};
using room_message = std::variant<join, leave, std::string>;
using lobby = std::map<std::string, weir::ref<room_message>>;

asio::awaitable<void> keep_room(weir::context<room_message> self) {
  std::vector<client> here;
  const auto say = [&here](const std::string& line) {
    for (const client& c : here)
      if (c.tell(line) == weir::sent::full)
        c.kill();  // a client that does not read is closed, and delays nobody else
  };
  while (auto m = co_await self.async_receive()) {
    if (auto* j = std::get_if<join>(&*m)) {
      here.push_back(j->who);
      say("* " + j->who.name() + " comes in\n");
    } else if (auto* l = std::get_if<leave>(&*m)) {
      std::erase(here, l->who);
      say("* " + l->who.name() + " leaves\n");
    } else {
      say(std::get<std::string>(*m));
    }
  }
}

asio::awaitable<void> write_lines(weir::context<std::string> self, socket_ptr s) {
  while (auto line = co_await self.async_receive())
    co_await asio::async_write(*s, asio::buffer(*line), asio::use_awaitable);
}

asio::awaitable<std::string> read_line(tcp::socket& s, std::string& buffer) {
  const auto most = asio::dynamic_buffer(buffer, 4096);
  std::string line(buffer, 0, co_await asio::async_read_until(s, most, '\n', asio::use_awaitable));
  buffer.erase(0, line.size());
  co_return line;
}

asio::awaitable<void> serve(socket_ptr s, lobby& rooms) {
  std::string buffer, where, name;
  std::istringstream(co_await read_line(*s, buffer)) >> where >> name;
  auto& room = rooms[where];
  if (!room) room = weir::spawn<room_message>(s->get_executor(), {.name = where}, keep_room);

  client me = weir::spawn<std::string>(s->get_executor(), {.name = name, .mailbox = 64},
                                       [s](weir::context<std::string> self) { return write_lines(self, s); });
  me.async_join([s](boost::system::error_code, weir::exit_status) { s->close(); });  // ends the reading below
  room.tell(join{me});
  try {
    while (true) {
      room_message line = name + ": " + co_await read_line(*s, buffer);
      co_await room.async_tell(std::move(line), asio::use_awaitable);  // waits while the mailbox is full
    }
  } catch (const boost::system::system_error&) {  // the client is gone
  }
  room.tell(leave{me});
  me.stop();
}

asio::awaitable<void> listen(tcp::acceptor& acceptor, lobby& rooms) {
  while (true) {
    auto s = std::make_shared<tcp::socket>(co_await acceptor.async_accept(asio::use_awaitable));
    asio::co_spawn(acceptor.get_executor(), serve(std::move(s), rooms), asio::detached);
  }
}

int main(int argc, char** argv) {
  asio::io_context io(1);
  const auto port = static_cast<unsigned short>(argc > 1 ? std::stoi(argv[1]) : 0);
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), port});
  std::cout << "chatting on port " << acceptor.local_endpoint().port() << std::endl;
  lobby rooms;
  asio::co_spawn(io, listen(acceptor, rooms), asio::detached);
  io.run();
}
